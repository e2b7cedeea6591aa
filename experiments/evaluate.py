"""``python -m experiments.evaluate --run=DIR``: score a run again, into its record."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from absl import flags

from experiments import command, decoding_flags, run_data, shared_flags
from transformer_ablation.config import Config
from transformer_ablation.report.record import add_scores, read_record
from transformer_ablation.runs import loading


def define(values: flags.FlagValues) -> None:
    """Flags of the evaluation."""
    shared_flags.define_run(values)
    text = "splits to score, with commas; else the run's validation and test split"
    flags.DEFINE_list("split", None, text, flag_values=values)
    decoding_flags.define(values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues) -> None:
    """Score, add to the record, print."""
    run = loading.read_run(shared_flags.run_folder(options))
    found = read_record(run.directory)
    if found is None or found["data"] is None or run.state == "running":
        state = "still running" if run.state == "running" else "without a record"
        raise command.UsageError(f"{run.directory}: is {state}; wait until it is done")
    run_data.check_version(run, found)
    config = decoding_flags.changed(run.config, options)
    names = _splits(config, options.split)
    entries = _score(run, found, config, names, options)
    add_scores(run.directory, entries)
    from experiments.score_lines import as_lines

    as_json = options.format == "json"
    print(json.dumps({"scores": entries}, indent=1) if as_json else as_lines(entries))


def _splits(config: Config, asked: list[str] | None) -> list[str]:
    from experiments.scoring import splits

    known = splits(config)
    for name in asked or []:
        if name not in known:
            raise command.UsageError(
                f"--split={name}: the run scores {' and '.join(known)}; for another, "
                "train with --config.data.test_split=NAME in another --workdir"
            )
    return [name for name in known if asked is None or name in asked]


def _score(
    run: loading.SavedRun,
    record: Mapping[str, Any],
    config: Config,
    names: list[str],
    options: flags.FlagValues,
) -> list[dict[str, Any]]:
    """New entries; translations are kept beside those of the run, named by settings."""
    from experiments import scoring, telling
    from transformer_ablation import parallel
    from transformer_ablation.data.tokens import prepare
    from transformer_ablation.evaluate.perplexity import make_scorer

    cache = shared_flags.cache_folder(options)
    parallel.set_up(cache)
    prepared = prepare(config.data, cache)
    run_data.check_data(run, record["data"], prepared)
    run = run._replace(config=config)
    count = config.decode.average_checkpoints
    trained = loading.load(run, count, options.step, telling.tell)
    scorer = make_scorer(trained.model)
    scored = scoring.Scored(
        config, prepared, trained.model, scorer, trained.params, trained.steps
    )
    decode = dataclasses.asdict(config.decode)
    settings = "-".join(
        f"{name}{decode[name]}"
        for name in sorted(decode)
        if name != "sentences_per_batch"
    )
    folder = run.directory / "translations"
    name = f"update{trained.steps[-1]}-{settings}"
    entries = scoring.score(
        scored,
        names,
        lambda n: folder / f"{n}.{name}.txt",
        lambda event: telling.tell(event["phase"]),
    )
    return entries or []


COMMAND = command.Command(
    name="evaluate",
    summary="Score a run's checkpoints again, with other decoding or averaged; the "
    "scores are added to its record.",
    examples=(
        "python -m experiments.evaluate --run=runs/table3/runs/base/seed0 "
        "--beam_size=1 --split=validation",
        "python -m experiments.evaluate --run=runs/m30k/runs/base/seed0 --average=2",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
