"""Shares of the machine: whole cores or GPUs, never more than there are."""

import os

import pytest

from transformer_ablation.sweep import devices
from transformer_ablation.sweep.devices import Share, shares
from transformer_ablation.sweep.runs import SweepError

CPU = {"JAX_PLATFORMS": "cpu"}


@pytest.fixture
def cores(monkeypatch):
    """``cores(n)``: a machine of n cores without topology."""

    def cores(count):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)))
        monkeypatch.setattr(devices, "TOPOLOGY", devices.Path("/nowhere"))

    return cores


def test_one_job_has_the_whole_machine():
    assert shares("1", None, {}) == [Share()]


def test_cores_are_shared_evenly(cores):
    cores(5)
    assert shares("2", None, CPU) == [Share((0, 1)), Share((2, 3))]
    assert shares("2", 1, CPU) == [Share((0,)), Share((1,))]
    assert shares("1", 3, CPU) == [Share((0, 1, 2))]


def test_more_than_there_is_is_refused_with_what_there_is(cores):
    cores(2)
    with pytest.raises(SweepError) as caught:
        shares("2", 2, CPU)
    assert str(caught.value) == (
        "--jobs=2: 2 runs at a time with 2 CPU cores each need 4 CPU cores; there are "
        "2 CPU cores here"
    )
    with pytest.raises(SweepError, match="3 runs at a time with 1 CPU core each need"):
        shares("3", None, CPU)
    with pytest.raises(SweepError, match="there is 1 GPU here"):
        shares("2", None, {"JAX_PLATFORMS": "cuda", "CUDA_VISIBLE_DEVICES": "5"})


def test_automatic_is_a_device_a_run(cores, monkeypatch):
    """Whatever the number of runs: another number of devices rounds otherwise."""
    cores(5)
    sizes = {"SC_PAGE_SIZE": 2**12, "SC_PHYS_PAGES": 2**22}  # 16 GiB
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    assert shares("auto", None, CPU) == [Share((n,)) for n in range(5)]
    assert shares("auto", 2, CPU) == [Share((0, 1)), Share((2, 3))]
    sizes["SC_PHYS_PAGES"] = 3 * 2**19  # 6 GiB: three workers
    assert len(shares("auto", None, CPU)) == 3
    sizes["SC_PHYS_PAGES"] = 2**17
    assert shares("auto", None, CPU) == [Share((0,))]
    gpus = {"JAX_PLATFORMS": "cuda", "CUDA_VISIBLE_DEVICES": "2,3"}
    environments = [share.environment for share in shares("auto", None, gpus)]
    assert environments == [{"CUDA_VISIBLE_DEVICES": n} for n in "23"]
    assert shares("auto", None, {"JAX_PLATFORMS": "tpu"}) == [Share()]


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5", "", "²"])
def test_other_words_than_numbers_and_auto_are_refused(jobs):
    with pytest.raises(SweepError, match="must be a number of runs, or auto"):
        shares(jobs, None, CPU)


def test_threads_of_a_core_stay_together(cores, tmp_path, monkeypatch):
    """Two cores of two threads, numbered as on many machines: 0 and 2 are one core."""
    cores(4)
    for cpu in range(4):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text(f"{cpu % 2}\n")
    monkeypatch.setattr(devices, "TOPOLOGY", tmp_path)
    assert shares("2", None, CPU) == [Share((0, 2)), Share((1, 3))]


@pytest.mark.parametrize(
    ("named", "found"),
    [("0,1,2,3", ["0", "1", "2", "3"]), ("GPU-a, GPU-b", ["GPU-a", "GPU-b"])]
    + [("", []), ("-1", []), ("2,-1,3", ["2"])],
)
def test_gpus_are_those_that_cuda_may_see(named, found):
    assert devices.gpus({"CUDA_VISIBLE_DEVICES": named}) == found


def test_each_worker_sees_its_gpus_alone():
    environment = {"JAX_PLATFORMS": "cuda,cpu", "CUDA_VISIBLE_DEVICES": "4,5,6,7"}
    assert [share.environment for share in shares("2", None, environment)] == [
        {"CUDA_VISIBLE_DEVICES": "4,5"},
        {"CUDA_VISIBLE_DEVICES": "6,7"},
    ]
    assert [s.environment for s in shares("3", 1, environment)][2] == {
        "CUDA_VISIBLE_DEVICES": "6"
    }


def test_gpus_are_counted_by_the_driver_s_own_tool(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        "#!/bin/sh\n"
        'echo "GPU 0: NVIDIA H200 (UUID: GPU-1)"\n'
        'echo "  MIG 1g.18gb Device 0: (UUID: MIG-1)"\n'
        'echo "GPU 1: NVIDIA H200 (UUID: GPU-2)"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert devices.gpus({}) == ["0", "1"]


def test_devices_that_one_process_holds_are_not_shared():
    with pytest.raises(SweepError, match="devices of the kind tpu cannot be shared"):
        shares("2", None, {"JAX_PLATFORMS": "tpu"})
