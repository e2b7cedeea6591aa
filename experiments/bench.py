"""``python -m experiments.bench``: what training and decoding cost on this machine."""

import json
import math
import time
from pathlib import Path
from typing import Any

from absl import flags

from experiments import bench_peers, bench_text, command, output, shared_flags
from transformer_ablation.report.json_file import write_json
from transformer_ablation.sweep import rows
from transformer_ablation.sweep.file import SweepFile


def define(values: flags.FlagValues) -> None:
    """Flags of the measurement."""
    text = "names of rows, with commas; base by default"
    flags.DEFINE_list("rows", None, text, flag_values=values)
    text = "for each measurement, at least; three repeats are made in any case"
    flags.DEFINE_float("seconds", 3.0, text, flag_values=values)
    text = "time Hugging Face's Marian model beside ours, in alternation"
    flags.DEFINE_bool("peers", False, text, flag_values=values)
    text = "file that the figures are written to as well, as JSON"
    flags.DEFINE_string("json", None, text, flag_values=values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Measure the rows and print what they cost."""
    names = [row.name for row in sweep_file.rows]
    usual = "base" if "base" in names else names[0]
    chosen = rows.select(sweep_file.rows, options.rows or [usual])
    expanded = rows.expand(sweep_file.base, chosen)
    check(options, expanded)
    found = measure(options, sweep_file, expanded)
    if options.format == "json":
        print(json.dumps(found, indent=1))
    else:
        print(bench_text.as_text(found))
    if options.json:
        write_json(Path(options.json), found)


def check(options: flags.FlagValues, expanded: list[rows.ExpandedRow]) -> None:
    """Refuse what cannot be measured, before anything is compiled.

    Raises:
      UsageError: for a flag; ExportError: for a row that has no peer.
    """
    if not (math.isfinite(options.seconds) and options.seconds > 0):
        raise command.UsageError(
            f"--seconds={options.seconds}: must be a number above 0, for example 3"
        )
    output.check_file(options.json, "json")
    if options.peers:
        bench_peers.check([item.config for item in expanded])


def measure(
    options: flags.FlagValues, sweep_file: SweepFile, expanded: list[rows.ExpandedRow]
) -> dict[str, Any]:
    """All figures and what they depend on, as one JSON object."""
    from experiments import bench_row, circumstances, telling
    from transformer_ablation import parallel

    parallel.use_all_cores()
    if options.peers:
        bench_peers.check_device()
    start, before = time.monotonic(), circumstances.now()
    with parallel.without_compilation_cache():
        measured = [
            bench_row.measure(
                item,
                shared_flags.cache_folder(options),
                options.seconds,
                options.peers,
                telling.tell,
            )
            for item in expanded
        ]
    return {
        "sweep_file": sweep_file.path,
        **before,
        "seconds_per_measurement": options.seconds,
        "rows": measured,
        "seconds": time.monotonic() - start,
    }


COMMAND = command.Command(
    name="bench",
    summary="Measure on this machine what training and decoding cost: updates and "
    "tokens a second, share of the fastest matrix product, compiling, dropout, waiting "
    "for batches, beam search, memory.",
    examples=(
        "python -m experiments.bench --config=configs/table3.py:grammar",
        "python -m experiments.bench --config=configs/table3.py --rows=big --seconds=9",
        "python -m experiments.bench --config=configs/table3.py:grammar --peers",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
