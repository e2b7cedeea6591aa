"""``python -m experiments.export --run=DIR --out=DIR``: a run for other software."""

import importlib.util
import tempfile
from pathlib import Path

from absl import flags

from experiments import command, decoding_flags, shared_flags, telling
from transformer_ablation.export import marian
from transformer_ablation.runs import loading

FORMATS = ("marian", "ctranslate2")
CONVERTER_NEEDS = ("ctranslate2", "torch", "transformers")


def define(values: flags.FlagValues) -> None:
    """Flags of the export."""
    shared_flags.define_run(values)
    text = "folder to write, which must not hold files; needed"
    flags.DEFINE_string("out", None, text, flag_values=values)
    text = "marian: for transformers.MarianMTModel; ctranslate2: that, converted"
    flags.DEFINE_enum("format", "marian", FORMATS, text, flag_values=values)
    decoding_flags.define(values, ("average",))
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> None:
    """Load the run and write it."""
    folder = shared_flags.run_folder(options)
    if not options.out:
        raise command.UsageError("--out is missing; name the folder to write")
    out = Path(options.out)
    run = loading.read_run(folder)
    marian.check(run.config.model)
    marian.check_folder(out)
    if options.format == "ctranslate2":
        _check_converter()
    run = run._replace(config=decoding_flags.changed(run.config, options))
    from transformer_ablation import parallel

    parallel.set_up(shared_flags.cache_folder(options))
    count = run.config.decode.average_checkpoints
    trained = loading.load(run, count, options.step, telling.tell)
    params = parallel.on_host(trained.params)
    if options.format == "marian":
        marian.write(out, run.config, params, run.vocabulary)
    else:
        _convert(out, run, params)
    which = ", ".join(map(str, trained.steps))
    print(f"wrote {out} (checkpoint {which})")
    for line in marian.done_otherwise(run.config):
        print(f"differs: {line}")
    if options.format == "ctranslate2":
        print("differs: beam, penalty and cap are given to translate_batch there")


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
        "--out=runs/base_marian",
        "python -m experiments.export --run=runs/table3/runs/base/seed0 "
        "--format=ctranslate2 --out=runs/base_ct2",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
