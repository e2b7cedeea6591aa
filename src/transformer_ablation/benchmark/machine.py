"""The machine and the process: what a measurement depends on beside the code."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

from transformer_ablation import process

# Variables that change how fast the same program runs.
ENVIRONMENT = (
    "XLA_FLAGS JAX_PLATFORMS JAX_NUM_CPU_DEVICES JAX_DEFAULT_MATMUL_PRECISION "
    "GLIBC_TUNABLES MALLOC_ARENA_MAX MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_ "
    "MALLOC_TOP_PAD_ LD_PRELOAD OMP_NUM_THREADS OMP_WAIT_POLICY MKL_NUM_THREADS "
    "CUDA_VISIBLE_DEVICES XLA_PYTHON_CLIENT_MEM_FRACTION"
).split()


def describe() -> dict[str, Any]:
    """Processor, cores of this process, memory in bytes, system, load just now."""
    return {
        "processor": processor(),
        "cores": len(process.cores()),
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
        "load": list(os.getloadavg()),
    }


def environment() -> dict[str, str | None]:
    """The variables of ``ENVIRONMENT``; None where one is not set."""
    return {name: os.environ.get(name) for name in ENVIRONMENT}


def processor() -> str:
    """The processor's name; its architecture where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Memory of the machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def peak_memory_bytes() -> int | None:
    """The most memory this process has held so far; None where nobody counts it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
