"""What a command says on stderr before something that takes a while."""

import sys


def tell(text: str) -> None:
    """One line at once, ``text ...``; stdout stays the results' alone."""
    print(f"{text} ...", file=sys.stderr, flush=True)
