"""The real worker process, with runs that train nothing and load no JAX.

What a row does stands in the variable ACTIONS (JSON: row -> action, ``finish`` by
default); every run that is begun adds a line to the file JOURNAL.
"""

import json
import os
import signal
import sys
import time
import types

from experiments import sweep_record, sweep_worker
from transformer_ablation.report.record import read_record, write_record
from transformer_ablation.sweep import claims


def write(run, status, reason=None):
    """The run's record, if the run is still held here."""
    claims.check(run.directory)
    found = read_record(run.directory) or sweep_record.new_record(run)
    write_record(run.directory, {**found, "status": status, "reason": reason})
    return status


def run_one(run, stop, progress):
    with open(os.environ["JOURNAL"], "a") as journal:
        journal.write(f"{run.name} {os.getpid()}\n")
    write(run, "running")
    values = {"step": 1, "steps": 6, "loss": 2.5, "tokens_per_second": 100.0}
    progress({**values, "phase": "training"})
    action = json.loads(os.environ.get("ACTIONS", "{}")).get(run.row, "finish")
    name, _, number = action.partition(" ")
    again = run.directory / "again"
    if name == "once":  # the first time only
        if again.exists():
            return write(run, "finished")
        again.touch()
        name, _, number = number.partition(" ")
    if name == "signal":
        os.kill(os.getpid(), getattr(signal, number))
        time.sleep(60)
    elif name == "exit":
        os._exit(int(number))
    elif name == "memory":
        raise MemoryError("a tensor too many")
    elif name == "noise":
        os.write(1, b'{"ended": "diverged"}\nof a library\n')
        print("by print")
    elif name == "cores":
        (run.directory / "cores").write_text(str(sorted(os.sched_getaffinity(0))))
    elif name == "wait":  # for the stop, and save
        assert stop.wait(120)
        return write(run, "preempted", "saved")
    elif name == "sleep":
        time.sleep(float(number))
    elif name == "gate":  # until a file is there
        while not os.path.exists(number) and not stop.is_set():
            time.sleep(0.02)
    return write(run, "finished")


if __name__ == "__main__":
    claims.BEAT_SECONDS = float(os.environ.get("BEAT", "10"))
    factory = types.SimpleNamespace(run_one_factory=lambda cache: run_one)
    sys.modules["experiments.run"] = factory
    sweep_worker.main()
