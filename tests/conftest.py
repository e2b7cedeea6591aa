"""What every test may count on: four CPU devices and strict array shapes.

Everything is said through environment variables, before JAX is imported: tests
that need no JAX stay quick, and child processes of a test get the same settings.
"""

import copy
import os
import pathlib
import platform
import signal

import hypothesis
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def _say(**flags: int) -> None:
    """Adds flags of XLA that XLA_FLAGS does not have yet."""
    said = os.environ.get("XLA_FLAGS", "")
    for name, value in flags.items():
        if f"--xla_{name}" not in said:
            said = f"{said} --xla_{name}={value}".strip()
    os.environ["XLA_FLAGS"] = said


# Four devices on one CPU. Programs of tests run once or twice, on little: they are
# made without LLVM's optimisations, in three quarters of the time.
_say(force_host_platform_device_count=4, backend_optimization_level=0)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# b_H + x_BTH is an error; so is anything else that aligns axes by luck.
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
# Compiled programs are kept, so a second run of the tests spends less time on them;
# by machine, since they hold instructions that another processor may lack.
_COMPILED = REPOSITORY / ".cache" / "jax" / (platform.node() or "local")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(2**28))  # bytes
# `python -m experiments.x` in a child process finds the library from any folder.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(REPOSITORY / "src"), str(REPOSITORY)]
    + [p for p in [os.environ.get("PYTHONPATH")] if p]
)

# Tests that a shell has started in the background ignore Ctrl-C, and with nohup a
# hangup, as would all their children: these get what a terminal gives.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The first example of a property may include a compilation: no deadline. The same
# examples in every run: a failure can be looked at again.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")

# Files that take longest: with several processes they begin first, so that no process
# is left with one of them at the end.
LONGEST = (
    "test_verify",
    "test_numerics",
    "test_hosts",
    "test_end_to_end",
    "test_step",
    "test_translate",
    "test_packed",
    "test_kills",
    "test_bench",
)


def pytest_collection_modifyitems(items):
    """The longest files first, the others as they were."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONGEST)))


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    """The root of the working tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def multi30k_directory() -> pathlib.Path:
    """The folder with the files of Multi30k; without one the test is skipped."""
    named = os.environ.get("TRANSFORMER_ABLATION_MULTI30K")
    folder = pathlib.Path(named or REPOSITORY.parent / "shared" / "data" / "multi30k")
    if not folder.is_dir():
        pytest.skip(f"no Multi30k in {folder}: set TRANSFORMER_ABLATION_MULTI30K")
    return folder


@pytest.fixture(scope="session")
def _base_mapping() -> dict:
    from configs import base

    return base.get_config().to_dict()


@pytest.fixture
def base_mapping(_base_mapping):
    """configs/base.py as nested plain values, free to be changed by the test."""
    return copy.deepcopy(_base_mapping)


@pytest.fixture
def base_config(base_mapping):
    """The paper's base model as the frozen config."""
    from transformer_ablation import config

    return config.from_mapping(base_mapping)


@pytest.fixture
def tiny_config(base_config):
    """A model of a few thousand parameters on the embedded corpus.

    Sizes are pairwise different, so that a swapped axis fails.
    """
    from transformer_ablation import config

    return config.replace(
        base_config,
        {
            "model.num_layers": 2,
            "model.d_model": 12,
            "model.d_ff": 20,
            "model.num_heads": 2,
            "model.d_k": 7,
            "model.d_v": 5,
            "model.max_length": 64,
            "data.corpus": "grammar",
            "data.vocabulary_size": 600,
            "data.max_train_length": 40,
            "data.length_buckets": 2,
            "data.tokens_per_batch": 512,
            "optimizer.warmup_steps": 4,
            "train.steps": 6,
            "train.evaluate_every_steps": 3,
            "train.checkpoint_every_steps": 3,
            "train.log_every_steps": 1,
            "train.sample_sentences": 0,
            "decode.sentences_per_batch": 8,
        },
    )
