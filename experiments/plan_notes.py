"""What a plan finds in the workdir that it looks into."""

from pathlib import Path

from experiments.sweep_runs import check_workdir
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import Config, replace
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep.plan import Plan
from transformer_ablation.sweep.rows import ExpandedRow
from transformer_ablation.sweep.runs import SweepError, folder, holds

ANOTHER_CONFIG, ANOTHER_VERSION = "another config", "another version"


def state(workdir: str | None, item: ExpandedRow, seed: int) -> str:
    """Status of the recorded run, where ``sweep`` would take it for the one planned."""
    place = None if workdir is None else folder(Path(workdir), item.row.name, seed)
    record = None if place is None else read_record(place)
    if record is None:
        return "pending"
    if record["results_version"] != RESULTS_VERSION:
        return ANOTHER_VERSION
    config = replace(item.config, {"train.seed": seed})
    return record["status"] if holds(record, config) else ANOTHER_CONFIG


def workdir_notes(workdir: str | None, base: Config, plan: Plan) -> list[str]:
    """That nothing is there yet, or why ``sweep`` would refuse it; else nothing."""
    if workdir is None:
        return []
    path = Path(workdir)
    if not path.exists():
        return [f"{path}: nothing is there yet."]
    try:
        check_workdir(path, base)
    except SweepError as error:
        return [f"A sweep would be refused there. {error}."]
    advice = "use another --workdir, or move it"
    return [
        f"A sweep would be refused there. {place}: holds a run of {reason}; {advice}."
        for row in plan.rows
        for seed, found in row.states.items()
        if (reason := _refusal(found, place := folder(path, row.item.row.name, seed)))
    ]


def _refusal(found: str, place: Path) -> str | None:
    """What a run is of that a sweep cannot go on with; None if it can."""
    if found != ANOTHER_VERSION:
        return found if found == ANOTHER_CONFIG else None
    version = (read_record(place) or {}).get("results_version")
    return f"results version {version}, this program's is {RESULTS_VERSION}"
