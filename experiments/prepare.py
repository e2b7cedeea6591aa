"""``python -m experiments.prepare``: data and vocabulary only, with a report."""

import json
import time

from absl import flags

from experiments import command, data_report, shared_flags
from transformer_ablation.data import filters
from transformer_ablation.data.summary import example_lines, summarize
from transformer_ablation.data.tokens import prepare
from transformer_ablation.report.columns import counted
from transformer_ablation.sweep.file import SweepFile


def define(values: flags.FlagValues) -> None:
    """Flags of the preparation."""
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Prepare the data of base and print what it holds."""
    start = time.monotonic()
    prepared = prepare(sweep_file.base.data, shared_flags.cache_folder(options))
    found = summarize(prepared, sweep_file.base)
    found["seconds"] = round(time.monotonic() - start, 3)
    if options.format == "json":
        print(json.dumps(found, indent=1))
    else:
        print(as_text(found))


def as_text(found: dict) -> str:
    """The report for people."""
    manifest, vocabulary = found["manifest"], found["vocabulary"]
    source, target = manifest["source_language"], manifest["target_language"]
    changed = "" if manifest.get("official", True) else ", not the published text"
    lines = [
        f"{manifest['corpus']} {manifest['version']}, {source} to {target}{changed}",
        *_held_out(manifest),
        *example_lines(found["example"]),
        f"manifest {found['manifest_hash'][:16]}",
        f"vocabulary {vocabulary['hash'][:16]}, {vocabulary['size']:,} pieces",
        *found["notes"],
        "",
        f"{'split':<18}{'pairs':>10}{source + ' tokens':>14}{target + ' tokens':>14}"
        f"{'longest':>10}",
    ]
    for split, counts in found["tokens"].items():
        longest = "/".join(str(n) for n in counts["longest"].values())
        lines.append(
            f"{split:<18}{counts['pairs']:>10,}{counts['source']:>14,}"
            f"{counts['target']:>14,}{longest:>10}"
        )
    shapes = (tuple(shape.values()) for shape in found["shapes"])
    padding = found["padding"]
    return "\n".join(
        [
            *lines,
            "",
            *data_report.findings(manifest),
            "",
            f"training pairs: {filters.as_text(found['filters'])}",
            f"{counted(found['updates_per_epoch'], 'update')} an epoch; padding: "
            f"{padding['source']:.1%} of source, {padding['target']:.1%} of target",
            "rows x source x target: "
            + ", ".join(f"{r}x{s}x{t}" for r, s, t in shapes),
            f"{_seconds(found['seconds'])} for the data, without the program's start",
        ]
    )


def _seconds(seconds: float) -> str:
    return "under 0.1 seconds" if seconds < 0.1 else f"{seconds:.1f} seconds"


def _held_out(manifest: dict) -> list[str]:
    """What was taken out of the training text, in a line; none where nothing was."""
    if (held := manifest.get("holdout")) is None:
        return []
    return [
        f"held out of the {held['from_pairs']:,} pairs of {held['from_split']}: "
        f"{held['pairs']:,} each for {' and '.join(held['splits'])} "
        f"(seed {held['seed']}), and their copies"
    ]


COMMAND = command.Command(
    name="prepare",
    summary="Prepare the corpus, the vocabulary and the tokens of a config, and "
    "report what they hold. Runs of the config then start at once.",
    examples=(
        "python -m experiments.prepare --config=configs/table3.py:grammar",
        "python -m experiments.prepare --config=configs/table3.py:multi30k "
        "--config.data.directory=DIR --format=json",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
