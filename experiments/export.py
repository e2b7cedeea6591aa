"""``python -m experiments.export --run=DIR --out=DIR``: a run for other software."""

import importlib.util
import tempfile
from pathlib import Path

from absl import flags

from experiments import command, loading, shared_flags
from transformer_ablation.config import replace
from transformer_ablation.export import marian

FORMATS = ("marian", "ctranslate2")
CONVERTER_NEEDS = ("ctranslate2", "torch", "transformers")


def define(values: flags.FlagValues) -> None:
    """Flags of the export."""
    text = "folder of a run, WORKDIR/runs/ROW/seedK; needed"
    flags.DEFINE_string("run", None, text, flag_values=values)
    text = "folder to write, which must not hold files; needed"
    flags.DEFINE_string("out", None, text, flag_values=values)
    text = "marian: for transformers.MarianMTModel; ctranslate2: that, converted"
    flags.DEFINE_enum("format", "marian", FORMATS, text, flag_values=values)
    text = "newest checkpoints to average; else the run's decode.average_checkpoints"
    flags.DEFINE_integer("average", None, text, flag_values=values)
    text = "use the checkpoint of this update; the newest by default"
    flags.DEFINE_integer("step", None, text, flag_values=values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> None:
    """Load the run and write it."""
    for name in ("run", "out"):
        if not options[name].value:
            raise command.UsageError(f"--{name} is missing; see the examples")
    out = Path(options.out)
    run = loading.read_run(Path(options.run))
    marian.check(run.config.model)
    marian.check_folder(out)
    if options.format == "ctranslate2":
        _check_converter()
    if options.average is not None:
        changes = {"decode.average_checkpoints": options.average}
        run = run._replace(config=replace(run.config, changes))
    from transformer_ablation import parallel

    parallel.set_up(shared_flags.cache_folder(options))
    trained = loading.load(run, run.config.decode.average_checkpoints, options.step)
    params = parallel.on_host(trained.params)
    if options.format == "marian":
        marian.write(out, run.config, params, run.vocabulary)
    else:
        _convert(out, run, params)
    which = ", ".join(map(str, trained.steps))
    print(f"wrote {out} (checkpoint {which})")


def _check_converter() -> None:
    missing = [n for n in CONVERTER_NEEDS if importlib.util.find_spec(n) is None]
    if missing:
        raise command.UsageError(
            f"--format=ctranslate2 needs {', '.join(missing)}; install them with "
            "pip install -r requirements-parity.txt"
        )


def _convert(out: Path, run: loading.SavedRun, params: dict) -> None:
    from transformer_ablation.export import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "marian"
        marian.write(made, run.config, params, run.vocabulary)
        ctranslate2.convert(made, out)


COMMAND = command.Command(
    name="export",
    summary="Write a run as a model of other software: a Hugging Face Marian folder, "
    "or that converted by CTranslate2.",
    examples=(
        "python -m experiments.export --run=runs/table3/runs/base/seed0 "
        "--out=base_marian",
        "python -m experiments.export --run=runs/table3/runs/base/seed0 "
        "--format=ctranslate2 --out=base_ct2",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
