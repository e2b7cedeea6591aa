"""Runs in a thread of this process: for one that a cluster has started to do a run."""

from pathlib import Path

from experiments import sweep_launch, sweep_record
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import claims, runs, stopping
from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.protocols import Hear
from transformer_ablation.sweep.worker_thread import WorkerThread


class Here:
    """``launch`` of ``sweep_runs.complete``, without another process.

    The process has the devices that it was given, its log is what it prints, and
    whoever kills it has killed the run.
    """

    def __init__(self, cache: Path, stop: stopping.Stop):
        self._cache, self._stop = cache, stop
        self._worker: WorkerThread | None = None

    @property
    def working(self) -> bool:
        """Whether a run still goes on, as after a second Ctrl-C; then leave at once."""
        return self._worker is not None and self._worker.working

    def launch(self, todo: list[runs.Run]) -> Outcome:
        """Run what has no result; devices that are held do not wait for another's
        training."""
        return sweep_launch.launch(
            todo, self._start, stop=self._stop, wait_for_training=False
        )

    def _start(self, share: Share, hear: Hear) -> WorkerThread:
        from experiments.run import run_one_factory

        self._worker = WorkerThread(
            lambda: run_one_factory(self._cache),
            hear,
            read_record=read_record,
            mark_stopped=sweep_record.mark_stopped,
        )
        return self._worker


def refuse_held(run: runs.Run) -> None:
    """Refuse a run that another launcher does; to wait for it is to hold the devices.

    Raises:
      SweepError: if another launcher gives signs of life.
    """
    holder = claims.living(run.directory)
    if holder is not None:
        raise runs.SweepError(
            f"{run.name}: {holder} is doing it; wait for that, or stop it"
        )
