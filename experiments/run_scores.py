"""The scores of a trained run: perplexity, translations and BLEU of its splits."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.evaluate.bleu import corpus_bleu
from transformer_ablation.evaluate.perplexity import Scorer, perplexity
from transformer_ablation.evaluate.translation import Translator
from transformer_ablation.report.json_file import write_text
from transformer_ablation.report.record import new_score
from transformer_ablation.sweep.runs import Run
from transformer_ablation.train import step
from transformer_ablation.train.averaging import average
from transformer_ablation.train.checkpoint import CheckpointError, Checkpoints


class Scores(NamedTuple):
    """Entries of the record's ``scores`` and the seconds they took."""

    entries: list[dict[str, Any]]
    seconds: float


def averaged_params(
    model: Any, config: Config, checkpoints: Checkpoints, count: int
) -> tuple[Any, list[int]]:
    """Parameters averaged over the newest checkpoints, and their updates.

    Raises:
      CheckpointError: if there are fewer than ``count``.
    """
    steps = checkpoints.steps()[-count:]
    if len(steps) < count:
        raise CheckpointError(
            f"decode.average_checkpoints: {count} checkpoints are to be averaged, but "
            f"there are {len(steps)}; save more often (train.checkpoint_every_steps)"
        )
    shapes = step.state_shapes(model, config)
    params = average([checkpoints.restore(shapes, s).params for s in steps])
    return parallel.replicate(params), steps


def score_run(
    run: Run,
    prepared: Prepared,
    model: Any,
    scorer: Scorer,
    checkpoints: Checkpoints,
    progress: Callable[[dict[str, Any]], None],
    stop: threading.Event,
) -> Scores | None:
    """Scores of the validation and the test split, or None if told to stop."""
    started = time.monotonic()
    config = run.config
    count = config.decode.average_checkpoints
    params, steps = averaged_params(model, config, checkpoints, count)
    translator = Translator(model, config.decode)
    entries = []
    for name in (config.data.validation_split, config.data.test_split):
        if name is None:
            continue
        if stop.is_set():
            return None
        progress({"phase": f"scoring {name}"})
        split = prepared.test
        if name == config.data.validation_split:
            split = prepared.validation
        found = perplexity(scorer, params, split, config.decode.sentences_per_batch)
        entries.append(
            new_score(
                name,
                "ppl",
                found.value,
                sentences=found.sentences,
                steps=steps,
                target_tokens=found.target_tokens,
            )
        )
        translations = [best for (best,) in translator.translate(params, split.source)]
        entries.append(_bleu(run, prepared, name, translations, steps))
    return Scores(entries, time.monotonic() - started)


def _bleu(
    run: Run, prepared: Prepared, name: str, translations: Sequence[Any], steps: list
) -> dict[str, Any]:
    """Writes the translations of a split and scores them."""
    decode = run.config.decode
    texts = [prepared.vocabulary.decode(best.ids) for best in translations]
    # One line a sentence: a line break that a model writes is shown as a space.
    lines = [text.replace("\n", " ") for text in texts]
    folder = run.directory / "translations"
    folder.mkdir(exist_ok=True)
    write_text(folder / f"{name}.txt", "".join(f"{line}\n" for line in lines))
    references = [target for _, target in prepared.corpus.splits[name]]
    found = corpus_bleu(lines, references)
    return new_score(
        name,
        "bleu",
        found.value,
        sentences=found.sentences,
        steps=steps,
        decode={
            "beam_size": decode.beam_size,
            "length_penalty_alpha": decode.length_penalty_alpha,
            "extra_length": decode.extra_length,
        },
        signature=found.signature,
        unfinished=sum(best.unfinished for best in translations),
    )
