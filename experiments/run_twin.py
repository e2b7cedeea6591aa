"""What a run need not train: a finished one may differ from it in decoding alone.

Training is deterministic, so the checkpoints of such a twin are those that the run
would make; they are copied, with the values that were logged of training.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments import run_board
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import to_mapping
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.report import json_file
from transformer_ablation.report.metrics import METRICS_FILE, read_metrics
from transformer_ablation.report.record import RecordError, read_record
from transformer_ablation.sweep import claims
from transformer_ablation.sweep.identity import without_decoding
from transformer_ablation.sweep.runs import Run

CHECKPOINTS = "checkpoints"
# Written before the checkpoints are there, as the record is only written after it.
TWIN_FILE = "trained_as.txt"


def adopt(run: Run, prepared: Prepared, note: Callable[[str], None]) -> str | None:
    """Copies the training of a finished twin into a run that has none of its own.

    Returns:
      ``ROW/seedK`` of the twin that the run's training is of, also when it was copied
      by an earlier process; None where the run trains itself.
    """
    named = run.directory / TWIN_FILE
    if _has_begun(run.directory):
        if named.exists():
            return named.read_text("utf-8").strip()
        return (read_record(run.directory) or {}).get("trained_as")
    found = _twin(run, prepared)
    if found is None:
        named.unlink(missing_ok=True)
        return None
    folder, record = found
    name = f"{record['row']}/seed{record['seed']}"
    claims.check(run.directory)
    run.directory.mkdir(parents=True, exist_ok=True)
    scores = run_board.final_values(record["scores"], run.config.data)
    kept = [e for e in read_metrics(folder) if e["tag"] not in scores]
    text = "".join(json.dumps(entry) + "\n" for entry in kept)
    json_file.write_text(run.directory / METRICS_FILE, text)
    json_file.write_text(named, f"{name}\n")
    temporary = run.directory / f".{CHECKPOINTS}.copy"
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(folder / CHECKPOINTS, temporary)
    shutil.rmtree(run.directory / CHECKPOINTS, ignore_errors=True)
    temporary.rename(run.directory / CHECKPOINTS)
    note(f"trained already, as {name}, which differs in decoding alone")
    return name


def _has_begun(folder: Path) -> bool:
    try:
        return any((folder / CHECKPOINTS).iterdir())
    except FileNotFoundError:
        return False


def _twin(run: Run, prepared: Prepared) -> tuple[Path, Mapping[str, Any]] | None:
    """Folder and record of a finished run with this run's training."""
    wanted = without_decoding(to_mapping(run.config))
    data = manifest_hash(prepared.corpus.manifest)
    for folder in sorted(run.directory.parents[1].glob(f"*/seed{run.seed}")):
        try:
            record = read_record(folder)
        except RecordError:
            continue
        if (
            record is not None
            and folder != run.directory
            and record["status"] == "finished"
            and record["results_version"] == RESULTS_VERSION
            and without_decoding(record["config"]) == wanted
            and (record["data"] or {}).get("manifest_hash") == data
            and _has_begun(folder)
        ):
            return folder, record
    return None
