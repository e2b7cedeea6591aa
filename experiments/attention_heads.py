"""Tables of what a run's heads do, and of what each is worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import attention_runs, output
from experiments.attention_importance import Values, add_importance
from experiments.telling import tell
from transformer_ablation import parallel
from transformer_ablation.evaluate.head_summary import MEASURES, summarize
from transformer_ablation.report import head_table, samples
from transformer_ablation.report.columns import counted
from transformer_ablation.report.head_quantities import HeadRow, HeadTable, known
from transformer_ablation.runs.loading import SavedRun


def put(
    runs: Sequence[SavedRun], options: flags.FlagValues, place: Path | None
) -> None:
    """Writes or prints all heads of some runs, with the columns that are asked for.

    Raises:
      KeyboardInterrupt: where it is interrupted, after writing what was known by then.
    """
    rows: list[HeadRow] = []
    facts: dict[str, dict[str, Any]] = {}
    columns = [*MEASURES] * options.summary
    columns += ["loss_lost", "ppl_lost"] * options.importance
    columns += ["bleu_lost"] * options.bleu
    try:
        _add_runs(runs, options, rows, facts)
    except KeyboardInterrupt:
        if not rows:
            raise
        last = [*facts.values()][-1]
        last["interrupted"] = "what is missing was not computed"
        _write(HeadTable(columns, rows, facts), options, place)
        why = "interrupted; the table has what was known by then"
        raise KeyboardInterrupt(why) from None
    _write(HeadTable(columns, rows, facts), options, place)


def _write(table: HeadTable, options: flags.FlagValues, place: Path | None) -> None:
    text = head_table.render(table, options.format)
    output.put(text, place, options.format)


def _add_runs(
    runs: Sequence[SavedRun],
    options: flags.FlagValues,
    rows: list[HeadRow],
    facts: dict[str, dict[str, Any]],
) -> None:
    """Adds rows and facts run by run; of the last one, as far as it comes."""
    for name, run in attention_runs.loaded(runs, options).items():
        if rows:  # programs of the run before are no use to this one
            parallel.forget_programs()
        values: Values = {}
        facts[name] = {}
        try:
            _of_run(run, options, values, facts[name])
        finally:
            rows += [
                HeadRow(name, kind, layer + 1, head + 1, own)
                for (kind, layer, head), own in values.items()
            ]


def _of_run(
    run: attention_runs.Loaded,
    options: flags.FlagValues,
    values: Values,
    facts: dict[str, Any],
) -> None:
    """Adds columns by head, and facts of the run."""
    config, prepared, trained = run
    places = samples.places(len(prepared.validation), options.sentences)
    pairs = prepared.validation.take(places)
    facts |= {"updates": trained.steps, "sentences": len(pairs)}
    if options.summary:
        tell(f"summing up the attention in {counted(len(pairs), 'sentence')}")
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
        add_importance(trained, config, vocabulary, pairs, texts, values, facts)
