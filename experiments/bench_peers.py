"""Hugging Face's Marian model beside ours, for ``experiments.bench --peers``."""

import importlib.util
from collections.abc import Sequence
from typing import Any

from experiments.command import UsageError
from transformer_ablation.config import Config

PACKAGES = ("torch", "transformers")


def check(configs: Sequence[Config]) -> None:
    """Refuse what cannot be compared.

    Raises:
      UsageError: if packages are missing, or numbers are not float32.
      ExportError: if no Marian model comes near a config's.
    """
    from transformer_ablation.benchmark import marian

    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            "--peers needs PyTorch and Transformers; not installed: "
            f"{', '.join(missing)}. Install them with "
            "pip install -r requirements-parity.txt"
        )
    for config in configs:
        marian.nearest(config.model)
        if config.model.dtype != "float32":
            raise UsageError(
                "--peers compares in float32; add --config.model.dtype=float32"
            )


def check_device() -> None:
    """Refuse a comparison of a GPU with a CPU.

    Raises:
      UsageError: if JAX does not run on the CPU.
    """
    import jax

    if jax.default_backend() != "cpu":
        raise UsageError(
            f"--peers compares on the CPU, and JAX has a {jax.default_backend()} here; "
            "set JAX_PLATFORMS=cpu"
        )


def compare(subject: Any) -> dict[str, Any]:
    """Rates of both and their ratios: training, then beam search."""
    from transformer_ablation.benchmark import comparison, marian
    from transformer_ablation.benchmark.peer import Peer

    subject.say("Hugging Face's Marian and ours, in turn")
    ours = comparison.Ours(
        subject.config,
        subject.model,
        subject.batches,
        subject.prepared.train,
        subject.prepared.validation,
        subject.updater,
    )
    # Half the time of a measurement for a turn of the slower side.
    seconds = subject.seconds / 2
    with Peer(ours.job()) as theirs:
        facts = theirs.ask("facts")
        training = comparison.compare_training(ours, theirs, seconds)
        decode = comparison.compare_search(ours, theirs, seconds)
        return {
            "peer": "transformers.MarianMTModel",
            **facts,
            "differences": marian.nearest(subject.config.model),
            "training": _plain(training),
            "decode": {"target_tokens": ours.length, **_plain(decode)},
            "memory_bytes": theirs.ask("peak_memory_bytes"),
            "idle_core_share": {"ours": theirs.our_idle, "theirs": theirs.idle},
        }


def _plain(found: Any) -> dict[str, Any]:
    """A comparison in JSON's own types."""
    spreads = {name: getattr(found, name) for name in ("ours", "theirs", "ratio")}
    plain = {name: value._asdict() for name, value in spreads.items()}
    return {"per_turn": found.per_turn, **plain}
