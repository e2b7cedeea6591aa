"""``load_run``: a trained run for a notebook or a program."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from transformer_ablation import parallel
from transformer_ablation.config import Config, replace
from transformer_ablation.evaluate.perplexity import make_token_scorer
from transformer_ablation.runs import scoring, searching
from transformer_ablation.runs.attending import Attended, attend
from transformer_ablation.runs.cache_folder import cache_folder
from transformer_ablation.runs.errors import RunError, as_run_errors
from transformer_ablation.runs.lines import Translated, best_target
from transformer_ablation.runs.loading import (
    SavedRun,
    Trained,
    check_attention,
    check_average,
    load,
    read_run,
    version_note,
)
from transformer_ablation.runs.translating import LineTranslator
from transformer_ablation.vocabulary import EOS, Vocabulary


@as_run_errors()
def load_run(
    path: str | os.PathLike,
    *,
    step: int | None = None,
    average: int | None = None,
    cache: str | os.PathLike | None = None,
) -> "Run":
    """The run of a folder ``WORKDIR/runs/ROW/seedK``, wherever it has been moved.

    Args:
      step: the checkpoint of this update; the newest by default.
      average: how many checkpoints up to that are averaged; else the run's
        ``decode.average_checkpoints``.
      cache: where compiled programs are kept; else TRANSFORMER_ABLATION_CACHE, else
        ~/.cache/transformer_ablation.

    Warns:
      UserWarning: of a run of another results version.

    Raises:
      RunError: for a folder without a run, or one that cannot be used.
    """
    try:
        folder = Path(path)
    except TypeError:
        raise RunError(f"path: {path!r} is no path of a run's folder") from None
    saved = read_run(folder)
    if step is not None:
        step = searching.whole("", "step", step)
    if average is not None:
        average = searching.whole("", "average", average)
        check_average(saved.config, average, "average")
        changed = replace(saved.config, {"decode.average_checkpoints": average})
        saved = saved._replace(config=changed)
    if note := version_note(saved):
        warnings.warn(note, stacklevel=3)
    parallel.set_up(cache_folder(cache))
    return Run(saved, load(saved, saved.config.decode.average_checkpoints, step))


class Run:
    """A trained run.

    Attributes:
      directory: its folder.
      config: its config, frozen, by section: ``run.config.model.num_heads``.
      vocabulary: text to ids and back: ``encode``, ``decode``, ``pieces``.
      model: the flax module; ``model.apply({"params": run.params}, source, target)``
        gives the logits of ids [B, S] and [B, T].
      params: its parameters.
      steps: the updates whose checkpoints ``params`` are the mean of.
      state: what its record says: finished, running, ...
    """

    def __init__(self, saved: SavedRun, trained: Trained):
        self.directory: Path = saved.directory
        self.config: Config = saved.config
        self.vocabulary: Vocabulary = saved.vocabulary
        self.state: str = saved.state
        self.model: Any = trained.model
        self.params: Any = trained.params
        self.steps: list[int] = trained.steps
        self._trained = trained
        self._translators: dict[tuple, LineTranslator] = {}
        self._scorer = make_token_scorer(trained.model)

    def __repr__(self) -> str:
        which = ", ".join(map(str, self.steps))
        return f"Run({str(self.directory)!r}, checkpoint {which})"

    @overload
    def translate(self, text: str, **options: Any) -> Translated: ...
    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[Translated]: ...

    @as_run_errors()
    def translate(
        self,
        text: str | Sequence[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        greedy: bool = False,
        sample: bool = False,
        temperature: float | None = None,
        top_k: int | None = None,
        seed: int | None = None,
        decode: Mapping[str, Any] | None = None,
        token_scores: bool = True,
    ) -> Translated | list[Translated]:
        """A line, or each of many, with its translations; ``.text`` is the best.

        Args:
          beam_size: candidates of the beam search; else the run's.
          n_best: translations a line.
          greedy: the most probable piece each time; a beam of 1.
          sample: draw pieces at random instead.
          temperature: of draws: logits are divided by it; 1 by default.
          top_k: of draws: only the most probable pieces; all by default.
          seed: of draws; 0 by default. Draws of line number n, which counts from 1,
            are the same whatever the other lines are.
          decode: other fields of the config's section ``decode``, for example
            ``{"length_penalty_alpha": 1.0, "extra_length": 20}``.
          token_scores: whether to compute ``token_log_probs``.

        Raises:
          RunError: for an option that may not be, or a line that is too long.
        """
        lines, alone = _lines(text, "text")
        fields = {f"decode.{name}": value for name, value in (decode or {}).items()}
        search = searching.choose(
            replace(self.config, fields),
            beam_size=beam_size,
            n_best=n_best,
            greedy=greedy,
            sample=sample,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
        )
        translator = self._translator(search, len(lines))
        found = translator.translate(
            lines,
            sampling=search.sampling,
            few_shapes=alone,
            token_scores=token_scores,
        )
        return found[0] if alone else found

    def _translator(self, search: searching.Search, count: int) -> LineTranslator:
        """One for so many lines; it keeps what it has compiled."""
        decode = search.config.decode
        rows = min(decode.sentences_per_batch, scoring.power_of_two(count))
        config = replace(search.config, {"decode.sentences_per_batch": rows})
        key = config.decode, search.n_best
        if key not in self._translators:
            self._translators[key] = LineTranslator(
                self._trained, config, self.vocabulary, search.n_best
            )
        return self._translators[key]

    @overload
    def score(self, sources: str, targets: str) -> scoring.SentenceScore: ...
    @overload
    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> scoring.Scores: ...

    @as_run_errors()
    def score(
        self, sources: str | Sequence[str], targets: str | Sequence[str]
    ) -> scoring.SentenceScore | scoring.Scores:
        """Log-probabilities of targets given their sources, by piece and in sum.

        Of two texts the score of the pair; of two lists ``.sentences``, and
        ``.ppl``, which of a split's pairs is the perplexity of the run's record.

        Raises:
          RunError: for lists of different lengths, or a line that is too long.
        """
        if isinstance(sources, str) != isinstance(targets, str):
            raise RunError("sources and targets: give two texts, or two lists of texts")
        lines, alone = _lines(sources, "sources")
        found = scoring.score(
            self._trained,
            self._scorer,
            self.config,
            self.vocabulary,
            lines,
            _lines(targets, "targets")[0],
        )
        return found.sentences[0] if alone else found

    @overload
    def attention(self, source: str, target: str | None = None) -> Attended: ...
    @overload
    def attention(
        self, source: Sequence[str], target: Sequence[str] | None = None
    ) -> list[Attended]: ...

    @as_run_errors()
    def attention(
        self, source: str | Sequence[str], target: str | Sequence[str] | None = None
    ) -> Attended | list[Attended]:
        """What every head attends to; without a target in the run's translation.

        The weights and the labels of their positions, ``.sheet(kind)`` as PNG and
        ``.page()`` as HTML; see ``runs/attending.py``.

        Raises:
          RunError: for other numbers of sources and targets, or a side that is blank
            or too long.
        """
        check_attention(self.directory, self.config)
        if target is not None and isinstance(source, str) != isinstance(target, str):
            raise RunError("source and target: give two texts, or two lists of texts")
        lines, alone = _lines(source, "source")
        given = None if target is None else _lines(target, "target")[0]
        if given is not None and len(given) != len(lines):
            raise RunError(f"{len(lines)} sources, but {len(given)} targets")
        for name, side in (("source", lines), ("target", given or [])):
            for number, line in enumerate(side, start=1):
                if not line.strip():
                    raise RunError(f"{name} {number}: is blank; give it a word")
        if given is not None:
            targets = [[*ids, EOS] for ids in self.vocabulary.encode_all(given)]
            notes = ["The target is the one given."] * len(lines)
        else:
            found = self.translate(lines, token_scores=False)
            targets, notes = (
                zip(*map(best_target, found), strict=True) if found else ((), ())
            )
        sources = [[*ids, EOS] for ids in self.vocabulary.encode_all(lines)]
        which = ", ".join(map(str, self.steps))
        about = f"{self.directory}, update {which}."
        pairs = list(zip(lines, notes, sources, targets, strict=True))
        shown = list(attend(self._trained, self.vocabulary, about, pairs))
        return shown[0] if alone else shown


def _lines(text: Any, name: str) -> tuple[list[str], bool]:
    """A list of lines, and whether one was given alone."""
    if isinstance(text, str):
        return [text], True
    try:
        lines = list(text)  # also a column of a table
    except TypeError:
        raise RunError(f"{name}: {text!r} is neither a text nor texts") from None
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise RunError(f"{name}: number {number} is {line!r}, which is no text")
    return lines, False
