"""The batch script of a sweep's array: one task a run, requeued by itself."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformer_ablation.sweep.slurm_options import SlurmOptions
from transformer_ablation.sweep.stopping import REQUEUE

# 128 and the number of SIGUSR1, SIGUSR2, SIGTERM: told to stop before it could listen.
TOLD_TO_STOP = (138, 140, 143)

# sbatch's own name of an option, where it is not the key.
NAMES = {"cpus": "cpus-per-task"}
ASKED = ("partition", "account", "qos", "time", "gres", "cpus", "mem")

BODY = """\
run=${runs[$SLURM_ARRAY_TASK_ID]}
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID

requeue() {
  if [ "${SLURM_RESTART_COUNT:-0}" -ge "$max_requeues" ]; then
    echo "not requeued: $max_requeues times are enough (slurm max_requeues)"
  # A task that was cancelled is no longer running and stays away.
  elif [ "$(squeue --noheader --jobs="$task" --format=%T)" = RUNNING ]; then
    scontrol requeue "$task"
  fi
}

start=$((${SLURM_RESTART_COUNT:-0} + 1))
echo "$run: task $task on $(hostname), start $start, $(date)"
code=1
trap 'caught=1; kill -TERM "$child" 2>/dev/null' USR1 TERM
"${worker[@]}" --run="$run" &
child=$!
while :; do
  caught=
  wait "$child"; now=$?
  [ "$now" = 127 ] || code=$now  # 127: its code is known already
  [ -n "$caught" ] && [ "$now" != 127 ] || break
done
if [ "$code" = REQUEUE ]; then
  requeue
elif [ "$code" -gt 128 ]; then
  "${worker[@]}" --run="$run" --ended="$code"
  case $code in
    TOLD_TO_STOP) requeue ;;
    *)  # killed: once more, as it may have been another's fault
      killed=$folder/$SLURM_ARRAY_TASK_ID.killed
      [ -e "$killed" ] || { : > "$killed"; requeue; } ;;
  esac
fi
exit "$code"
"""


def script(
    name: str,
    runs: Sequence[str],
    folder: Path,
    worker: Sequence[str | Path],
    root: Path,
    environment: Mapping[str, str],
    options: SlurmOptions,
) -> str:
    """Text for ``sbatch``, to be submitted from ``folder``, where its logs go.

    ``worker`` with ``--run=ROW/seedK`` does a run, in the folder ``root``. All that
    is not ours to choose is quoted for the shell; nothing of it stands in a line that
    sbatch reads.
    """
    limit = "" if options.array_limit is None else f"%{options.array_limit}"
    asked = {NAMES.get(key, key): getattr(options, key) for key in ASKED}
    directives = [
        f"--job-name={name}",
        f"--array=0-{len(runs) - 1}{limit}",
        "--output=%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR1@{options.signal_seconds}",
        *(f"--{key}={value}" for key, value in asked.items() if value is not None),
        *options.sbatch,
    ]
    stop_codes = "|".join(map(str, TOLD_TO_STOP))
    body = BODY.replace("REQUEUE", str(REQUEUE))
    body = body.replace("TOLD_TO_STOP", stop_codes)
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {directive}" for directive in directives),
        "",
        "runs=(",
        *(f"  {shlex.quote(run)}" for run in runs),
        ")",
        f"worker=({shlex.join(map(str, worker))})",
        f"folder={shlex.quote(str(folder))}",
        f"max_requeues={options.max_requeues}",
        f"cd {shlex.quote(str(root))} || exit 1",
        *(f"export {key}={shlex.quote(v)}" for key, v in environment.items()),
        *options.setup,
    ]
    return "\n".join(lines) + "\n" + body
