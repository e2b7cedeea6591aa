"""What an unknown name may have been meant for."""

import difflib
from collections.abc import Iterable

from transformer_ablation.config.sections import FIELDS, SECTIONS


def suggestion(path: str) -> str:
    """`; did you mean X?` with the nearest known path, else what there is."""
    section, _, name = path.rpartition(".")
    known = list(FIELDS) if section else list(SECTIONS) + list(FIELDS)
    by_name = {p.rpartition(".")[2]: p for p in reversed(known)}
    near = difflib.get_close_matches(name, by_name, n=1)
    if near:
        return f"; did you mean {by_name[near[0]]}?"
    if section in SECTIONS:
        names = [p.rpartition(".")[2] for p in FIELDS if p.startswith(f"{section}.")]
        return f"; {section} has {', '.join(names)}"
    return f"; there are {', '.join(SECTIONS)}"


def unknown_name(kind: str, name: str, known: Iterable[str], nearest: int = 1) -> str:
    """``unknown KIND 'x'; did you mean y? The KINDs are: ...``."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=nearest)
    start = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"unknown {kind} {name!r}; {start} {kind}s are: {', '.join(known)}"
