"""``python -m experiments.growth``: how costs grow with each size on this machine."""

import json
import time
from pathlib import Path
from typing import Any

from absl import flags

from experiments import (
    command,
    figure_file,
    growth_figure,
    growth_text,
    output,
    shared_flags,
    time_flags,
)
from transformer_ablation.config import unknown_name
from transformer_ablation.report.json_file import write_json
from transformer_ablation.sweep.file import SweepFile

LONGEST = 3600.0  # seconds of a point
NAMES = ("batch tokens", "length", "d_model", "N", "vocabulary", "beam")


def define(values: flags.FlagValues) -> None:
    """Flags of the measurement."""
    text = f"what is varied, with commas, of: {', '.join(NAMES)}; all by default"
    flags.DEFINE_list("sizes", None, text, flag_values=values)
    text = "for each point, at least; three repeats are made in any case"
    flags.DEFINE_float("seconds", 1.0, text, flag_values=values)
    text = "file of the figure, such as growth.svg or growth.png; needs matplotlib"
    flags.DEFINE_string("figure", None, text, flag_values=values)
    text = "file that the figures are written to as well, as JSON"
    flags.DEFINE_string("json", None, text, flag_values=values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Measure every size around the base config and print the powers."""
    names = check(options)
    found = measure(options, sweep_file, names)
    as_json = options.format == "json"
    print(json.dumps(found, indent=1) if as_json else growth_text.as_text(found))
    if options.json:
        write_json(Path(options.json), found)
    if options.figure:
        growth_figure.draw(found, Path(options.figure))


def check(options: flags.FlagValues) -> list[str]:
    """The names of what is varied.

    Raises:
      UsageError: for a flag that cannot be followed.
    """
    for name in options.sizes or []:
        if name not in NAMES:
            raise command.UsageError(f"--sizes: {unknown_name('size', name, NAMES)}")
    time_flags.check_seconds(options, "seconds", LONGEST)
    output.check_file(options.json, "json")
    if options.figure is not None:
        figure_file.check(options.figure)
    return [name for name in NAMES if name in (options.sizes or NAMES)]


def measure(
    options: flags.FlagValues, sweep_file: SweepFile, names: list[str]
) -> dict[str, Any]:
    """All points and powers, as one JSON object."""
    from experiments import circumstances, pace, telling
    from transformer_ablation import parallel
    from transformer_ablation.benchmark import growth
    from transformer_ablation.runs import building

    parallel.set_up(shared_flags.cache_folder(options))
    start, before, found = time.monotonic(), circumstances.now(), []
    for name in names:
        axis = growth.AXES[name]

        def hear(size: int, left: float | None, name: str = name) -> None:
            telling.tell(f"{name}, {size:,}{pace.to_go(left)}")

        telling.tell(f"{name}: {len(axis.factors)} sizes")
        points = growth.measure(
            building.build_model, sweep_file.base, axis, options.seconds, hear
        )
        sizes = [point.size for point in points]
        powers = {
            what: growth.growth(sizes, [getattr(p, what) for p in points])._asdict()
            for what in ("seconds", "flops")
        }
        rows = [point._asdict() for point in points]
        found.append({"size": name, "order": axis.order, **powers, "points": rows})
    end = {"growth": found, "seconds": time.monotonic() - start}
    return {"sweep_file": sweep_file.path, **before, **end}


COMMAND = command.Command(
    name="growth",
    summary="Measure how the time of a token grows with batch, length, width, depth, "
    "vocabulary and beam, beside what its operations grow with.",
    examples=(
        "python -m experiments.growth --figure=growth.svg",
        "python -m experiments.growth --config=configs/table3.py:multi30k "
        "--sizes=length,beam",
    ),
    define=define,
    body=body,
    takes_config=True,
    config=lambda options: "configs/table3.py:grammar",
)

if __name__ == "__main__":
    command.main(COMMAND)
