"""``load_sweep``: all runs of a sweep for a notebook; loads no JAX."""

import os
from typing import Any

from transformer_ablation.report.run_rows import run_rows
from transformer_ablation.runs.errors import as_run_errors


@as_run_errors()
def load_sweep(path: str | os.PathLike, *, as_records: bool = False) -> Any:
    """The runs of a workdir, finished or not, one a row; see ``report/run_rows.py``.

    A pandas DataFrame where pandas is installed, which this project does not ask for;
    else, or with ``as_records``, a list of dicts with the same keys in the same order.
    ``load_run(row["directory"])`` loads one.

    Raises:
      RunError: for a missing folder, one without runs, or a broken file.
    """
    rows = run_rows(os.fspath(path))
    if as_records:
        return rows
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame.from_records(rows)
