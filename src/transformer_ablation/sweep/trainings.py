"""What runs of a workdir train: those that differ in decoding alone share that."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.sweep import claims
from transformer_ablation.sweep.identity import training, training_of
from transformer_ablation.sweep.runs import ReadRecord, Run


class Trainings:
    """Trainings by other launchers, which may have other rows to do than this one.

    What a run trains is known of ``runs``, else by the record in its folder.
    """

    def __init__(
        self, runs: Iterable[Run], read_record: ReadRecord, watch: claims.Watch
    ):
        self._read_record, self._watch = read_record, watch
        self._known = {run.directory: training(run.config) for run in runs}

    def of(self, run: Run) -> str:
        """Equal for runs that train alike."""
        return self._known[run.directory]

    def elsewhere(self, run: Run, own: Collection[Path]) -> str | None:
        """Who trains what the run would; None if nobody, or it can be had already.

        ``own`` are folders of runs that this launcher does. Call it every few seconds,
        for claims whose process cannot be asked.
        """
        found = None
        for folder in sorted(run.directory.parents[1].glob(f"*/{run.directory.name}")):
            if folder == run.directory or folder in own:
                continue
            record = self._record(folder)
            if self._training(folder, record) != self.of(run):
                continue
            if record.get("status") == "finished":
                return None
            holder = claims.current(folder)
            if holder is not None and not self._watch.is_dead(folder, holder):
                found = f"trained as {folder.parent.name}/{folder.name} by {holder}"
        return found

    def _record(self, folder: Path) -> Mapping[str, Any]:
        try:
            return self._read_record(folder) or {}
        except ValueError:  # whoever does that run will say what is wrong with it
            return {}

    def _training(self, folder: Path, record: Mapping[str, Any]) -> str | None:
        if folder in self._known or "config" not in record:
            return self._known.get(folder)
        return training_of(record["config"])
