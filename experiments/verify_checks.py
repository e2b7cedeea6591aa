"""The checks of ``experiments.verify``, each on a config and its data."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from experiments import verify_cases
from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.evaluate import verification as decoding
from transformer_ablation.runs.building import build_model
from transformer_ablation.train import verification as training
from transformer_ablation.train.step import create_state


class Finding(NamedTuple):
    """What a check saw; ``equal`` is None where there was nothing to compare."""

    check: str
    equal: bool | None
    text: str
    figures: dict[str, Any]


def check_devices(config: Config, prepared: Prepared) -> Finding:
    """One device against all."""
    if parallel.device_count() == 1:
        return Finding("devices", None, "There is one device here", {"count": 1})
    found = training.compare_devices(verify_cases.case(config, prepared))
    count = parallel.device_count()
    updates = f"{found.updates} update{'s' * (found.updates > 1)}"
    text = f"{updates} on 1 and on {count} devices: {_said(found)}"
    return Finding("devices", found.equal, text, {"count": count, **found._asdict()})


def check_packed(config: Config, prepared: Prepared) -> Finding:
    """Pairs that share a row against the same pairs in rows of their own."""
    length = config.data.packed_length
    if length is None:
        return Finding("packed", None, "A row of a batch holds one pair", {"pairs": 0})
    packed, alone, pairs = verify_cases.packed_and_alone(config, prepared)
    found = training.compare_packed(packed, alone)
    text = (
        f"An update of {pairs} pairs in {verify_cases.PACKED_ROWS} rows of {length} "
        "positions, and of the same pairs in rows of their own, without dropout: "
        f"{_said(found)}"
    )
    return Finding("packed", found.equal, text, {"pairs": pairs, **found._asdict()})


def check_resume(config: Config, prepared: Prepared) -> Finding:
    """A straight run against a resumed one."""
    with tempfile.TemporaryDirectory() as folder:
        case, hash_ = (
            verify_cases.case(config, prepared),
            prepared.vocabulary.content_hash,
        )
        found = training.compare_resumed(case, Path(folder), hash_)
    text = (
        f"{training.UPDATES} updates in one go, and in two with a checkpoint and a new "
        f"start between them: {found.different:,} numbers of the state differ, by at "
        f"most {found.largest:.1e} (allowed {found.allowed:.0e})"
    )
    return Finding("resume", found.equal, text, found._asdict())


def check_decode(config: Config, prepared: Prepared) -> Finding:
    """Cached decoding against the whole model, the beam against all hypotheses."""
    model = build_model(config, prepared.vocabulary.size)
    params = parallel.on_host(create_state(model, config).params)
    found = decoding.compare_decoding(model, params, config.decode, prepared.validation)
    text = (
        f"{found.sentences} sentences of {found.positions} positions: cached logits "
        f"differ from teacher-forced ones by at most {found.logits:.1e} of their "
        f"spread (allowed {found.allowed:.0e}); over {decoding.PIECES} pieces and "
        f"lengths up to {decoding.CAP} the beam misses the best of all hypotheses "
        f"{found.missed} times and its scores are off by at most {found.scores:.1e}"
    )
    return Finding("decode", found.equal, text, found._asdict())


def _said(found: training.Compared) -> str:
    return (
        f"loss, token count and gradient norm differ by at most {found.metrics:.1e} "
        f"(allowed {found.metrics_allowed:.0e}), mean gradients by "
        f"{found.gradient:.1e} of the largest (allowed {found.gradient_allowed:.0e})"
    )


CHECKS: dict[str, Callable[[Config, Any], Finding]] = {
    "devices": check_devices,
    "resume": check_resume,
    "packed": check_packed,
    "decode": check_decode,
}
