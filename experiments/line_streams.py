"""Lines of a file or of stdin through a translation to a file or to stdout."""

import codecs
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from transformer_ablation.runs.errors import LineError

# Read and written together: batches of similar length, and a test set in one go.
LINES_AT_ONCE = 4096

# ``translate(lines, number of the first, few_shapes=, done=) -> lines of each line``
Translate = Callable[..., list[list[str]]]


def decoded(lines: Iterable[bytes], first: int = 1) -> Iterator[str]:
    r"""Text of lines that end at ``\n``, without it; ``first`` is the first's number.

    Raises:
      LineError: for one that is not UTF-8, or a first with a byte order mark.
    """
    for number, line in enumerate(lines, start=first):
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            raise LineError(
                "line 1 begins with a byte order mark (the bytes EF BB BF), which "
                "would become a part of the sentence; save the text as UTF-8 without "
                "it, for example with: tail -c +4"
            )
        try:
            yield line.removesuffix(b"\n").decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte {error.start + 1} of the line: 0x{line[error.start]:02x}"
            message = f"line {number}, {byte} is not UTF-8; convert the text to UTF-8"
            raise LineError(message) from None


def pipe(
    translate: Translate,
    source: Iterable[bytes],
    target: BinaryIO,
    *,
    one_by_one: bool = False,
    all_known: bool = False,
    done: Callable[[int], None] = lambda count: None,
) -> int:
    """All of ``source``, many lines at a time or each as it comes; how many there are.

    Lengths to come are known for the first of many lines only, unless ``all_known``:
    what follows is padded to few lengths. ``done`` is told of so many more lines.
    """
    at_once, first = 1 if one_by_one else LINES_AT_ONCE, 1
    warned, source = False, iter(source)
    while lines := list(itertools.islice(source, at_once)):
        warned = warned or _warn_of_returns(lines, first)
        told = [0]

        def finished(count: int, told: list[int] = told) -> None:
            done(count - told[0])
            told[0] = count

        few_shapes = one_by_one or all_known or first > 1
        texts = list(decoded(lines, first))
        write(translate(texts, first, few_shapes=few_shapes, done=finished), target)
        done(len(lines) - told[0])  # blank ones are done with the others
        first += len(lines)
    return first - 1


def _warn_of_returns(lines: Iterable[bytes], first: int) -> bool:
    r"""Says once that a line has a ``\r`` before its end; it is text, and stays."""
    for number, line in enumerate(lines, start=first):
        if line.endswith(b"\r\n"):
            print(
                f"line {number} ends in a carriage return, as files of Windows do; it "
                "is translated as part of the text: take it off first (tr -d '\\r')",
                file=sys.stderr,
            )
            return True
    return False


def prompt(translate: Translate) -> None:
    """Line by line until the end of the input or Ctrl-C; a bad line is only told."""
    print("One line at a time; Ctrl-D ends.", file=sys.stderr)
    try:
        for number in itertools.count(1):
            print("> ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.buffer.readline()
            if not line:
                break
            try:
                texts = list(decoded([line], number))
                write(translate(texts, number, few_shapes=True), sys.stdout.buffer)
            except LineError as error:
                print(error, file=sys.stderr)
    except KeyboardInterrupt:
        pass
    print(file=sys.stderr)


def write(translations: Iterable[Iterable[str]], target: BinaryIO) -> None:
    r"""Every line as UTF-8 that ends in ``\n``, at once."""
    lines = [text for of_one in translations for text in of_one]
    target.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
    target.flush()
