"""Where every run stands: ``python -m experiments.status --workdir=DIR``."""

import sys
from pathlib import Path

from absl import flags

from experiments import command, shared_flags, slurm_status, status_text
from experiments.output import print_text
from transformer_ablation.report.damage import damage_named
from transformer_ablation.report.run_status import RunStatus, read_status
from transformer_ablation.sweep import claims

FORMATS = ("text", "json")
EVERY_SECONDS = 2.0
QUEUE_SECONDS = 15.0


def define(values: flags.FlagValues) -> None:
    """The flags of this command."""
    flags.DEFINE_string("workdir", None, "folder of a sweep", flag_values=values)
    flags.DEFINE_enum("format", "text", FORMATS, "for people or programs", values)
    text = "show it anew every two seconds until Ctrl-C; needs a terminal"
    flags.DEFINE_bool("watch", False, text, flag_values=values)


def body(values: flags.FlagValues) -> None:
    """Prints the state of every run of the workdir, once or again and again."""
    workdir = values["workdir"].value
    if workdir is None:
        raise command.UsageError("--workdir is missing; name the folder of a sweep")
    shared_flags.check_sweep("workdir", workdir)
    if values["watch"].value:
        _check_watch(values["format"].value)
        # A queue is many people's; one's own files may be read as often as one likes.
        often = not (Path(workdir) / "slurm").is_dir()
        seconds = EVERY_SECONDS if often else QUEUE_SECONDS
        status_text.watch(lambda: status_text.as_text(runs(workdir)), seconds)
        return
    as_json = values["format"].value == "json"
    found = runs(workdir)
    print_text(status_text.as_json(found) if as_json else status_text.as_text(found))


def runs(workdir: str) -> list[RunStatus]:
    """Every run of the workdir, with who holds it and where it is in a queue."""
    with damage_named(workdir):
        return slurm_status.with_queue(workdir, read_status(workdir, holder_of))


def holder_of(folder: Path) -> str | None:
    """The process that holds a run, unless it is known to have ended."""
    holder = claims.current(folder)
    if holder is None or holder.over:
        return None
    return str(holder)


def _check_watch(format: str) -> None:
    if format != "text":
        raise command.UsageError(
            f"--watch shows text, not {format}; leave one of the two out"
        )
    if not sys.stdout.isatty():
        raise command.UsageError(
            "--watch needs a terminal, and the output goes elsewhere; leave it out, "
            "and ask again when you want to know"
        )


COMMAND = command.Command(
    name="status",
    summary="The state, step, loss, speed, time left and last sign of life of every "
    "run; why it failed, with the last lines of its log, and which process holds it.",
    examples=(
        "python -m experiments.status --workdir=runs/table3",
        "python -m experiments.status --workdir=runs/table3 --watch",
        "python -m experiments.status --workdir=runs/table3 --format=json",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
