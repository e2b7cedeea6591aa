"""Tables of what a run's heads do, and of what each is worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import decoding_flags, run_data, shared_flags
from experiments.attention_importance import Values, add_importance
from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.report import samples
from transformer_ablation.report.head_quantities import HeadRow, HeadTable, known
from transformer_ablation.runs import loading


def table(folders: Sequence[Path], options: flags.FlagValues) -> HeadTable:
    """All heads of some runs, with the columns that the flags ask for."""
    from transformer_ablation import parallel
    from transformer_ablation.evaluate.head_summary import MEASURES

    runs = [loading.read_run(folder) for folder in folders]
    cache = shared_flags.cache_folder(options)
    parallel.set_up(cache)
    rows, facts = [], {}
    # All are at hand before the first is worked on: none fails after another's hours.
    loaded = [_load(run, cache, options) for run in runs]
    for name, each in zip(_names(folders), loaded, strict=True):
        if rows:  # programs of the run before are no use to this one
            parallel.forget_programs()
        found, facts[name] = _of_run(each, options)
        rows += [
            HeadRow(name, kind, layer + 1, head + 1, values)
            for (kind, layer, head), values in found.items()
        ]
    columns = [*MEASURES] * options.summary
    columns += ["loss_lost", "ppl_lost"] * options.importance
    columns += ["bleu_lost"] * options.bleu
    return HeadTable(columns, rows, facts)


def _names(folders: Sequence[Path]) -> list[str]:
    """ROW/seedK where that tells the runs apart, else their folders."""
    short = ["/".join(folder.absolute().parts[-2:]) for folder in folders]
    return short if len(set(short)) == len(short) else [str(f) for f in folders]


def _load(
    run: loading.SavedRun, cache: Path, options: flags.FlagValues
) -> tuple[Config, Prepared, loading.Trained]:
    """Config with the flags' changes, data and model of a run."""
    config = decoding_flags.changed(run.config, options)
    prepared = run_data.prepared_of(run, cache)
    average = config.decode.average_checkpoints
    return config, prepared, loading.load(run, average, options.step, tell)


def _of_run(
    loaded: tuple[Config, Prepared, loading.Trained], options: flags.FlagValues
) -> tuple[Values, dict[str, Any]]:
    """Columns by head, and facts of the run."""
    config, prepared, trained = loaded
    places = samples.places(len(prepared.validation), options.sentences)
    pairs = prepared.validation.take(places)
    values: Values = {}
    facts = {"updates": trained.steps, "sentences": len(pairs)}
    if options.summary:
        from transformer_ablation.evaluate.head_summary import summarize

        tell(f"summing up the attention in {len(pairs)} sentences")
        summary = summarize(trained.model, trained.params, pairs)
        facts |= {f"{kind} queries": n for kind, n in summary.queries.items()}
        for kind, means in summary.means.items():
            for name, found in means.items():
                for place, value in np.ndenumerate(found):
                    own = values.setdefault((kind, *place), {})
                    own[name] = known(float(value))
    if options.importance:
        every = list(prepared.corpus.splits[config.data.validation_split])
        texts = [every[i] for i in places] if options.bleu else None
        vocabulary = prepared.vocabulary
        facts |= add_importance(trained, config, vocabulary, pairs, texts, values)
    return values, facts
