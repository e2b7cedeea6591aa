"""``python -m experiments.gradients``: how gradients fall with distance."""

import time
from pathlib import Path
from typing import Any

from absl import flags

from experiments import command, figure_file, output, runs_flag, shared_flags
from transformer_ablation.runs import loading
from transformer_ablation.sweep import rows as sweep_rows
from transformer_ablation.sweep.file import SweepFile

DEFAULT = "configs/table1.py:grammar"
MOST = 1_000_000  # sentences, if the validation split has them
ROWS = 32  # sentences at a time


def define(values: flags.FlagValues) -> None:
    """Flags of the measurement."""
    given = {"flag_values": values}
    text = "folders of trained runs, with commas; without it, rows of --config"
    flags.DEFINE_list("runs", None, text, **given)
    text = "rows of the config, at initialisation; all by default"
    flags.DEFINE_list("rows", None, text, **given)
    counts = (
        ("sentences", 64, MOST, "of the validation split"),
        ("joined", 1, MOST, "sentences that make one sequence, for long distances"),
        ("positions", 4, 1000, "outputs asked of each sentence"),
        ("probes", 4, 1000, "random vectors for each output"),
    )
    for name, default, most, text in counts:
        flags.DEFINE_integer(name, default, text, 1, most, **given)
    flags.DEFINE_integer("seed", 0, "of the probes", 0, 2**31 - 1, **given)
    text = "file of the figure, such as gradients.svg; needs matplotlib"
    flags.DEFINE_string("figure", None, text, **given)
    flags.DEFINE_string("out", None, "file to write instead of printing", **given)
    shared_flags.define_cache(values)
    shared_flags.define_format(values, ("text", "markdown", "csv", "json"))


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Measure every model and print how its gradients fall."""
    from experiments import gradients_figure, gradients_models, gradients_text

    if options.figure is not None:
        figure_file.check(options.figure)
    place = output.output_file(options.out, options.format)
    if options.runs is not None:
        runs = [loading.read_run(each) for each in runs_flag.run_folders(options)]
        found = measure(options, lambda: gradients_models.of_runs(options, runs))
    else:
        chosen = sweep_rows.select(sweep_file.rows, options.rows)
        rows = sweep_rows.expand(sweep_file.base, chosen)
        found = measure(options, lambda: gradients_models.of_rows(options, rows))
    text = gradients_text.FORMATS[options.format](found)
    output.put(text, place, options.format)
    if options.figure:
        gradients_figure.draw(found, Path(options.figure))


def measure(options: flags.FlagValues, subjects: Any) -> dict[str, Any]:
    """The curves of all models, as one JSON object."""
    from experiments import circumstances, pace, telling
    from transformer_ablation import parallel
    from transformer_ablation.dependence import gradients

    start, found = time.monotonic(), []
    parallel.set_up(shared_flags.cache_folder(options))
    before = circumstances.now()
    count = options.sentences
    sample = gradients.Sample(min(count, ROWS), options.positions, options.probes)
    # All of them are read, and any is refused, before the first is measured.
    states = [(each, state) for each in subjects() for state in each.params]
    telling.tell(f"{len(states)} states of models, {count} sentences each")
    steps = pace.Pace(len(states) * -(-count // sample.rows))
    for subject, state in states:
        steps.begin(f"{subject.name}, {state}")
        given = subject.model, subject.params[state], subject.sentences, sample
        curves = gradients.curves(*given, options.seed, steps.done)
        sides = {side: _points(of) for side, of in curves._asdict().items()}
        found.append({"model": subject.name, "state": state, **sides})
    return {
        **before,
        "sentences": options.sentences,
        "joined": options.joined,
        "curves": found,
        "seconds": time.monotonic() - start,
    }


def _points(points: list[Any]) -> list[dict[str, Any]]:
    """With the norm over that of the nearest point of a tenth of the most pairs."""
    enough = max((point.count for point in points), default=0) / 10
    first = next((p.norm for p in points if p.norm and p.count >= enough), 1.0)
    return [{**p._asdict(), "relative": p.norm / first} for p in points]


COMMAND = command.Command(
    name="gradients",
    summary="Measure how the gradient of a decoder's output falls with the distance of "
    "the piece, at initialisation and after training.",
    examples=(
        "python -m experiments.gradients --rows=base,recurrent --joined=8",
        "python -m experiments.gradients --runs=runs/t1/runs/base/seed0,"
        "runs/t1/runs/recurrent/seed0 --figure=gradients.svg",
    ),
    define=define,
    body=body,
    takes_config=True,
    config=lambda options: DEFAULT,
    without_config=lambda options: (
        None if options.runs is None else "--runs are measured as they were trained"
    ),
)

if __name__ == "__main__":
    command.main(COMMAND)
