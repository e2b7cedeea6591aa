"""Tables of what a run's heads do, and of what each is worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import decoding_flags, run_data, shared_flags
from experiments.attention_importance import Values, add_importance
from experiments.telling import tell
from transformer_ablation.report import samples
from transformer_ablation.report.head_table import HeadRow, HeadTable, known
from transformer_ablation.runs import loading


def table(folders: Sequence[Path], options: flags.FlagValues) -> HeadTable:
    """All heads of some runs, with the columns that the flags ask for."""
    from transformer_ablation import parallel
    from transformer_ablation.evaluate.head_summary import MEASURES

    runs = [loading.read_run(folder) for folder in folders]
    cache = shared_flags.cache_folder(options)
    parallel.set_up(cache)
    rows, facts = [], {}
    for name, run in zip(_names(folders), runs, strict=True):
        found, facts[name] = _of_run(run, cache, options)
        rows += [
            HeadRow(name, kind, layer + 1, head + 1, values)
            for (kind, layer, head), values in found.items()
        ]
        parallel.forget_programs()
    columns = [*MEASURES] * options.summary
    columns += ["loss_lost", "ppl_lost"] * options.importance
    columns += ["bleu_lost"] * options.bleu
    return HeadTable(columns, rows, facts)


def _names(folders: Sequence[Path]) -> list[str]:
    """ROW/seedK where that tells the runs apart, else their folders."""
    short = ["/".join(folder.absolute().parts[-2:]) for folder in folders]
    return short if len(set(short)) == len(short) else [str(f) for f in folders]


def _of_run(
    run: loading.SavedRun, cache: Path, options: flags.FlagValues
) -> tuple[Values, dict[str, Any]]:
    """Columns by head, and facts of the run."""
    config = decoding_flags.changed(run.config, options)
    prepared = run_data.prepared_of(run, cache)
    split = prepared.validation
    places = samples.places(len(split), options.sentences)
    pairs = split.take(places)
    count = config.decode.average_checkpoints
    trained = loading.load(run, count, options.step, tell)
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
        facts |= add_importance(trained, config, run.vocabulary, pairs, texts, values)
    return values, facts
