"""What went wrong: read from exceptions and exit codes."""

import errno
import signal

from transformer_ablation.sweep import failures


def test_out_of_space_is_told_from_other_errors():
    assert failures.out_of_space(OSError(errno.ENOENT, "no such file")) is None
    assert failures.out_of_space(ValueError("space")) is None
    foreign = RuntimeError("write failed: No space left on device [x.cc:3]")
    assert failures.out_of_space(foreign).errno == errno.ENOSPC


def test_out_of_memory_is_told_from_other_errors():
    assert failures.out_of_memory(MemoryError())
    assert failures.out_of_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    jax = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate")
    assert failures.out_of_memory(jax)
    try:
        raise RuntimeError("scoring failed") from jax
    except RuntimeError as error:
        assert failures.out_of_memory(error)
    assert not failures.out_of_memory(ValueError("the vocabulary is exhausted"))


def test_death_names_the_signal_or_the_exit_code():
    assert failures.death(3) == "its process ended with exit code 3"
    assert failures.death(-11) == "its process was killed by SIGSEGV"
    assert failures.death(-9) == (
        "its process was killed by SIGKILL, perhaps out of memory: see dmesg"
    )
    assert failures.killed(-signal.SIGKILL) and not failures.killed(9)
