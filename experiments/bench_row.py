"""All that ``experiments.bench`` says of one row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import bench_decode, bench_peers, bench_training
from experiments.bench_subject import Subject, make_subject
from transformer_ablation import RESULTS_VERSION, parallel
from transformer_ablation.benchmark import machine, products
from transformer_ablation.config import to_mapping
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.model.accounting import parameter_counts
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.rows import ExpandedRow


def measure(
    item: ExpandedRow,
    cache: Path,
    seconds: float,
    peers: bool,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """All figures of a row; ``seconds`` is the least time of each measurement."""
    subject = make_subject(item.config, cache, seconds, say)
    training = bench_training.measure(subject)
    memory = {"after_training": machine.peak_memory_bytes()}
    decoding = bench_decode.measure(subject)
    memory["after_decoding"] = machine.peak_memory_bytes()
    ceiling = measure_ceiling(subject)
    found = {
        "row": item.row.name,
        "label": item.row.label,
        **_identity(subject),
        **training,
        **ceiling,
        "compile": {"cold": True, "programs": subject.programs.found},
        **decoding,
        "memory_bytes": memory,
    }
    for each in (*found["updates"], found["epoch"]):
        share = each["flops_per_second"] / found["ceiling_flops_per_second"]
        each["share_of_ceiling"] = share
    found["peers"] = bench_peers.compare(subject) if peers else None
    parallel.forget_programs()
    return found


def _identity(subject: Subject) -> dict[str, Any]:
    """What was measured: the config, its data and its model."""
    config, prepared, batches = subject.config, subject.prepared, subject.batches
    data = manifest_hash(prepared.corpus.manifest)
    return {
        "identity": run_identity(config, data, RESULTS_VERSION),
        "manifest_hash": data,
        "config": to_mapping(config),
        "parameters": parameter_counts(config.model, prepared.vocabulary.size),
        "padding": batches.padding(),
        "updates_per_epoch": batches.updates_per_epoch,
    }


def measure_ceiling(subject: Subject) -> dict[str, Any]:
    """The products of the shape that most updates have, and the fastest of them."""
    config, shape = subject.config, subject.usual.shape
    found = []
    for product in products.model_products(
        config.model, subject.model.vocabulary_size, shape.rows * shape.target_length
    ):
        subject.say(f"matrix products: {product.name}")
        best = products.measure(product, config.model.dtype, subject.seconds)
        rate = {"flops_per_second": best.flops_per_second}
        found.append({**product._asdict(), "devices": best.devices, **rate})
    ceiling = max(each["flops_per_second"] for each in found)
    return {"products": found, "ceiling_flops_per_second": ceiling}
