"""Where a record's numbers come from: the command, and the commit of the code.

The workers of a sweep are told by their launcher, in an environment variable: the
command that a user gave is not theirs.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from transformer_ablation.sweep.file import MODULE

CODE = ("src", "configs", "experiments")
VARIABLE = "TRANSFORMER_ABLATION_ORIGIN"


def origin() -> dict[str, Any]:
    """``command`` and ``commit`` for a record; the launcher's in a worker."""
    told = os.environ.get(VARIABLE)
    if told:
        return json.loads(told)
    return {"command": ["python", *sys.orig_argv[1:]], "commit": commit()}


def environment() -> dict[str, str]:
    """What a process is started with that is to say the same."""
    return {VARIABLE: json.dumps(origin())}


@functools.cache
def commit() -> dict[str, Any] | None:
    """The commit of the code that runs, with the config file that was loaded."""
    config_file = getattr(sys.modules.get(MODULE), "__file__", None)
    return commit_of(Path(__file__).parent.parent, config_file)


def commit_of(folder: Path, config_file: str | None) -> dict[str, Any] | None:
    """The commit of a checkout and whether what runs differs from it, or None.

    It differs where a file of the commit has been changed, and where the commit lacks
    a Python file of the code or the config file: none of them could be had back.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def lacks(path: str) -> bool:
        try:
            git("ls-files", "--error-unmatch", "--", path)
        except subprocess.CalledProcessError:
            return True
        return False

    code = [f"{name}/*.py" for name in CODE]
    try:
        dirty = (
            bool(git("status", "--porcelain", "--untracked-files=no"))
            or bool(git("ls-files", "--others", "--", *code))
            or (config_file is not None and lacks(config_file))
        )
        return {"hash": git("rev-parse", "HEAD"), "dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return None
