"""What a measurement depends on beside its flags."""

import time
from typing import Any

from experiments import origin, sweep_record
from transformer_ablation import RESULTS_VERSION, parallel
from transformer_ablation.benchmark import machine


def now() -> dict[str, Any]:
    """Date, versions, commit, machine with its load just now, devices, environment.

    To ask for once JAX's devices are set up, before anything is measured.
    """
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "results_version": RESULTS_VERSION,
        "packages": sweep_record.packages(),
        "commit": origin.commit(),
        "machine": machine.describe(),
        "device": parallel.device_description(),
        "environment": machine.environment(),
    }
