"""Two launchers of one machine take different devices, as long as there are some."""

import subprocess
import sys

from transformer_ablation.sweep.device_locks import DeviceLocks

CORES = ["0", "1", "2", "3"]


def test_second_launcher_takes_what_the_first_has_not(tmp_path):
    with DeviceLocks(tmp_path / "d") as first, DeviceLocks(tmp_path / "d") as second:
        assert first.take("cpu", CORES, 1) == ["0"]
        assert second.take("cpu", CORES, 2) == ["1", "2"]
        assert not first.busy and not second.busy
        with DeviceLocks(tmp_path / "d") as third:
            assert third.take("gpu", ["0"], 1) == ["0"]  # a device of another kind
            assert third.take("cpu", CORES, 3) == ["0", "1", "3"]
            assert third.busy == ["0", "1"]


def test_devices_are_free_once_their_launcher_has_ended(tmp_path):
    with DeviceLocks(tmp_path) as locks:
        locks.take("cpu", CORES, 4)
    with DeviceLocks(tmp_path) as locks:
        assert locks.take("cpu", CORES, 4) == CORES and not locks.busy


def test_killed_launcher_holds_nothing(tmp_path):
    program = (
        "import pathlib, sys, time\n"
        "from transformer_ablation.sweep.device_locks import DeviceLocks\n"
        "locks = DeviceLocks(pathlib.Path(sys.argv[1]))\n"
        "print(locks.take('cpu', ['0'], 1), flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "['0']\n"
        with DeviceLocks(tmp_path) as locks:
            assert locks.take("cpu", ["0"], 1) == ["0"] and locks.busy == ["0"]
        process.kill()
    with DeviceLocks(tmp_path) as locks:
        assert locks.take("cpu", ["0"], 1) == ["0"] and not locks.busy


def test_folder_that_cannot_be_made_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with DeviceLocks(tmp_path / "file" / "d") as locks:
        assert locks.take("cpu", CORES, 2) == ["0", "1"] and not locks.busy
