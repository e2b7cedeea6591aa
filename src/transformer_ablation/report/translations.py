"""The texts of a scored split, beside the record: one line a sentence.

``translations/SPLIT.txt`` holds the hypotheses of the run's own scores, and
``SPLIT.update....txt`` those of a later ``evaluate``. ``SPLIT.source.txt`` and
``SPLIT.reference.txt`` are the pairs they were scored against, so that a test or a
comparison needs the run's folder alone.
"""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from transformer_ablation.report.json_file import RecordError, write_text

FOLDER = "translations"


def write_texts(
    path: Path,
    split: str,
    hypotheses: Sequence[str],
    pairs: Sequence[tuple[str, str]],
) -> None:
    """Writes the hypotheses to ``path``, the split's (source, reference) beside it."""
    path.parent.mkdir(exist_ok=True)
    for place, lines in (
        (path, hypotheses),
        (path.with_name(f"{split}.source.txt"), [source for source, _ in pairs]),
        (path.with_name(f"{split}.reference.txt"), [target for _, target in pairs]),
    ):
        write_text(place, "".join(f"{line}\n" for line in lines))


def reference_file(run: Path, split: str) -> Path:
    """Where a run keeps the references of a split."""
    return run / FOLDER / f"{split}.reference.txt"


def source_file(run: Path, split: str) -> Path:
    """Where a run keeps the sources of a split."""
    return run / FOLDER / f"{split}.source.txt"


def hypothesis_files(run: Path, split: str) -> list[Path]:
    """Files with translations of a split: the run's own first, then later ones."""
    folder = run / FOLDER
    found = [folder / f"{split}.txt", *sorted(folder.glob(f"{split}.update*.txt"))]
    return [path for path in found if path.is_file()]


def read_lines(path: Path) -> list[str]:
    """Lines of a text, which end at a line feed and nowhere else.

    Raises:
      RecordError: for bytes that are not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: not UTF-8 ({error}); restore it from a copy, or score the run "
            "again with python -m experiments.evaluate"
        ) from None
    return text.removesuffix("\n").split("\n") if text else []


def normal_form_mismatches(hypotheses: Sequence[str], references: Sequence[str]) -> int:
    """Sentences with a word that the reference has in another Unicode normal form.

    BLEU counts such words as different though they look the same (é, and e with a
    combining accent). Words are what stands between spaces.
    """
    if all(unicodedata.is_normalized("NFC", t) for t in (*hypotheses, *references)):
        return 0
    return sum(map(_differ, hypotheses, references))


def _differ(hypothesis: str, reference: str) -> bool:
    ours, theirs = set(hypothesis.split()), set(reference.split())
    only = [{_nfc(word) for word in part} for part in (ours - theirs, theirs - ours)]
    return bool(only[0] & only[1])


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
