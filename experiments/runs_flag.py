"""``--runs=FOLDER,FOLDER``: several runs of any sweeps."""

from pathlib import Path

from absl import flags

from experiments.command import UsageError


def run_folders(options: flags.FlagValues) -> list[Path]:
    """The folders that --runs names, each once.

    Raises:
      UsageError: if it names none, or one without a name.
    """
    if not options.runs or not all(name.strip() for name in options.runs):
        raise UsageError(
            f"--runs={','.join(options.runs)}: must name folders of runs, with commas, "
            "for example --runs=runs/table3/runs/base/seed0,runs/table3/runs/A_h1/seed0"
        )
    return [*dict.fromkeys(map(Path, options.runs))]
