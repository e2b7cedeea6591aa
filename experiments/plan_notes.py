"""What a plan says of the workdir that it looks into."""

from pathlib import Path

from experiments.sweep_runs import check_workdir
from transformer_ablation.config import Config
from transformer_ablation.sweep.plan import Plan
from transformer_ablation.sweep.runs import SweepError, folder

ANOTHER = "another config"


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
    places = [
        f"{folder(path, row.item.row.name, seed)}: holds a run of another config"
        for row in plan.rows
        for seed, state in row.states.items()
        if state == ANOTHER
    ]
    advice = "use another --workdir, or move it"
    return [f"A sweep would be refused there. {place}; {advice}." for place in places]
