"""A launcher with light workers: ``light_launcher.py RUNS.json JOBS``."""

import json
import os
import pathlib
import sys

from experiments import sweep_launch
from transformer_ablation.sweep import claims, pool
from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.runs import run_from_mapping

HERE = pathlib.Path(__file__).parent
WORKER = (sys.executable, str(HERE / "light_worker.py"))

if __name__ == "__main__":
    claims.BEAT_SECONDS = float(os.environ.get("BEAT", "10"))
    claims.SILENT_SECONDS = float(os.environ.get("SILENT", "90"))
    pool.POLL_SECONDS = 0.05
    sweep_launch.WORKER = WORKER
    stored = json.loads(pathlib.Path(sys.argv[1]).read_text())
    runs = [run_from_mapping(each) for each in stored]
    shares = [Share()] * int(sys.argv[2])
    start = sweep_launch.worker_starter(pathlib.Path("unused"))
    outcome = sweep_launch.launch(runs, start, shares)
    print(json.dumps(outcome.states))
    sys.stderr.write(outcome.message() + "\n")
    sys.exit(0 if outcome.complete else 1)
