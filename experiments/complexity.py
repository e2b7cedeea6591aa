"""``python -m experiments.complexity``: Table 1 of the paper, measured."""

import math
import time
from pathlib import Path
from typing import Any

from absl import flags

from experiments import (
    command,
    complexity_flags,
    complexity_layers,
    figure_file,
    output,
    shared_flags,
)
from transformer_ablation.sweep import rows as sweep_rows
from transformer_ablation.sweep.file import SweepFile


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Measure the layers, print the table, draw the figure."""
    asked = complexity_flags.check(options)
    place = output.output_file(options.out, options.format)
    if options.figure is not None:
        figure_file.check(options.figure)
    chosen = sweep_rows.select(sweep_file.rows, options.rows)
    expanded = sweep_rows.expand(sweep_file.base, chosen)
    widths = {size.d for sizes in asked.axes.values() for size in sizes}
    complexity_layers.check_widths(widths, expanded)
    found = measure(options, sweep_file, expanded, asked)
    from experiments import complexity_figure, complexity_text

    text = complexity_text.FORMATS[options.format](found)
    output.put(text, place, options.format)
    if options.figure:
        complexity_figure.draw(found, Path(options.figure))


def measure(
    options: flags.FlagValues,
    sweep_file: SweepFile,
    expanded: list[sweep_rows.ExpandedRow],
    asked: complexity_flags.Asked,
) -> dict[str, Any]:
    """All points, powers and paths, as one JSON object."""
    from experiments import (
        circumstances,
        complexity_needs,
        complexity_paths,
        complexity_points,
        telling,
    )
    from transformer_ablation import parallel
    from transformer_ablation.benchmark import complexity, machine

    start = time.monotonic()
    parallel.set_up(shared_flags.cache_folder(options))
    before = circumstances.now()
    lines = list(complexity_layers.measured(expanded))
    memory = (machine.memory_bytes() or math.inf) / 2
    complexity_needs.check_memory(asked, lines, options.batch, memory)
    budget = complexity.Budget(options.seconds, options.most, memory)
    telling.tell(complexity_needs.estimate(asked, lines, budget, options.batch))
    layers = {line.key: line.layer for line in lines}
    points = {}
    for axis, sizes in asked.axes.items():
        points[axis] = complexity.measure(
            layers, sizes, budget, telling.tell, options.batch
        )
        parallel.forget_programs()
    telling.tell("paths")
    return {
        "sweep_file": sweep_file.path,
        **before,
        "batch": options.batch,
        "layers": [complexity_points.of_line(line, points) for line in lines],
        "paths": complexity_paths.paths(expanded, asked.path_n),
        "seconds": time.monotonic() - start,
    }


COMMAND = command.Command(
    name="complexity",
    summary="Measure Table 1 of the paper: how operations and time of each type of "
    "layer grow with length and width, its sequential operations, and its paths.",
    examples=(
        "python -m experiments.complexity --figure=table1.svg",
        "python -m experiments.complexity --quick --format=markdown",
        "python -m experiments.complexity --rows=restricted --n=1024,4096,16384 "
        "--most=60 --config.model.num_heads=8",
    ),
    define=complexity_flags.define,
    body=body,
    takes_config=True,
    config=lambda options: "configs/table1.py:grammar",
)

if __name__ == "__main__":
    command.main(COMMAND)
