"""A subword vocabulary shared by both languages (section 5.1 of the paper).

Byte-pair encoding by SentencePiece, set up so that no line of text is changed:
no Unicode normalisation, no squeezed spaces, bytes for unseen characters.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import sentencepiece

PAD = 0
UNK = 1
BOS = 2
EOS = 3

MIN_SIZE = 300  # the lowest that data.vocabulary_size may be

# SentencePiece writes a space as U+2581 and reads every U+2581 back as a space.
# Text that holds one is escaped, and so is the escape character itself.
_SPACE_MARK, _ESCAPE = "\u2581", "\x1a"
_FLAG = "--config.data.vocabulary_size"  # for messages
# The trainer drops whole lines that hold one of these; they stay byte pieces.
_UNTRAINABLE = re.compile("[\0\t\n\x1a\u2581\u2585]+")
# The trainer drops lines of more than 4,192 bytes; a character has at most four.
_MAX_TRAINING_CHARACTERS = 1000
# A saved vocabulary is a SentencePiece model followed by one more protobuf field
# (number 1000, 32 bytes: SHA-256 of what precedes it), which other readers skip.
_DIGEST_FIELD = b"\xc2\x3e\x20"
_DIGEST_BYTES = len(_DIGEST_FIELD) + 32


class VocabularyError(ValueError):
    """A vocabulary that cannot be made, read or used as asked."""


class Vocabulary:
    """Pieces with ids; ``decode(encode(line)) == line`` for any line of text."""

    def __init__(self, model: bytes):
        """Wraps a serialized SentencePiece model.

        Raises:
          VocabularyError: if it is no such model, or its special ids differ.
        """
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, TypeError) as error:
            raise VocabularyError("this is not a SentencePiece model") from error
        pieces = self._pieces
        ids = pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()
        if ids != (PAD, UNK, BOS, EOS):
            raise VocabularyError(
                f"ids of pad, unk, bos, eos are {ids}; they must be "
                f"{(PAD, UNK, BOS, EOS)}"
            )
        self._model = model

    def __reduce__(self) -> tuple:
        """For other processes: the model's bytes are all there is."""
        return (Vocabulary, (self._model,))

    @classmethod
    def train(cls, lines: Iterable[str], size: int) -> "Vocabulary":
        """Learns ``size`` pieces, the four special ones and 256 bytes among them.

        Depends on the order and text of ``lines`` only.

        Raises:
          VocabularyError: if the text has too few or too many different pieces
            for ``size``; the message says which sizes work, if any does.
        """
        writer = BytesIO()
        failures: list[BaseException] = []
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_training_lines(lines, failures),
                model_writer=writer,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                byte_fallback=True,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=1,  # is written into the model: a constant
                minloglevel=2,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            raise VocabularyError(_training_fault(str(error), size)) from error
        return cls(writer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Reads what ``save`` wrote.

        Raises:
          VocabularyError: if the file is missing, damaged or of another origin.
        """
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise VocabularyError(f"{path}: no vocabulary: {error.strerror}") from error
        model, field = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if field != _DIGEST_FIELD + hashlib.sha256(model).digest():
            raise VocabularyError(
                f"{path}: not a vocabulary of this project, or damaged (its checksum "
                "does not match); restore it from a copy"
            )
        return cls(model)

    def save(self, path: str | os.PathLike) -> None:
        """Writes one file; it appears whole or not at all."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._model).digest()
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self._model + _DIGEST_FIELD + digest)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def encode(self, text: str) -> list[int]:
        """Ids of one line, without BOS and EOS.

        Raises:
          VocabularyError: if the text holds a line end or half a surrogate pair.
        """
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str], num_threads: int = 2) -> list[list[int]]:
        """Ids of many lines; the same as ``encode`` of each."""
        escaped = [_escape(text) for text in texts]
        return self._pieces.encode(escaped, num_threads=num_threads)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids up to the first EOS; PAD and BOS are skipped.

        Always one line: a model may produce the byte of a line end, which no
        encoded line holds, and it is read as a space.

        Raises:
          VocabularyError: if an id is not in [0, size).
        """
        kept = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i not in (PAD, BOS):
                kept.append(i)
        self._check(kept)
        return _unescape(self._pieces.decode(kept)).replace("\n", " ")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The piece of every id as SentencePiece spells it (U+2581 is a space)."""
        ids = [int(i) for i in ids]
        self._check(ids)
        return [self._pieces.id_to_piece(i) for i in ids]

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return self._pieces.get_piece_size()

    @property
    def model_bytes(self) -> bytes:
        """The SentencePiece model, as other software reads it."""
        return self._model

    @property
    def content_hash(self) -> str:
        """SHA-256 of the model, in hexadecimal."""
        return hashlib.sha256(self._model).hexdigest()

    def _check(self, ids: list[int]) -> None:
        wrong = [i for i in ids if not 0 <= i < self.size]
        if wrong:
            raise VocabularyError(f"id {wrong[0]} is not in [0, {self.size})")


def _training_lines(
    lines: Iterable[str], failures: list[BaseException]
) -> Iterator[str]:
    """The lines in parts that the trainer does not drop.

    An exception of ``lines`` is kept in ``failures``: the trainer turns it into
    text.
    """
    try:
        for line in lines:
            for part in _UNTRAINABLE.split(line):
                yield from _short_parts(part)
    except BaseException as error:
        failures.append(error)
        raise


def _short_parts(text: str) -> Iterator[str]:
    """The text cut at spaces where possible, else between characters."""
    while len(text) > _MAX_TRAINING_CHARACTERS:
        space = text.rfind(" ", 1, _MAX_TRAINING_CHARACTERS)
        end = space if space > 0 else _MAX_TRAINING_CHARACTERS
        yield text[:end]
        text = text[end + 1 if space > 0 else end :]
    if text:
        yield text


def _training_fault(message: str, size: int) -> str:
    """What the user has to change, from the trainer's message."""
    if found := re.search(r"set it to a value <= (\d+)", message):
        if int(found[1]) < MIN_SIZE:
            return (
                f"this text is too small to learn from: it gives {found[1]} pieces, "
                f"and a vocabulary has at least {MIN_SIZE}; use more text"
            )
        return (
            f"a vocabulary of {size} pieces is more than this text gives; "
            f"the largest that works is {found[1]}: {_FLAG}={found[1]}"
        )
    if found := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"a vocabulary of {size} pieces cannot hold every character of this "
            f"text and the bytes; the smallest that works is {found[1]}: "
            f"{_FLAG}={found[1]}"
        )
    if "sentences_.empty()" in message:
        return "there is no text to learn a vocabulary from"
    return f"SentencePiece failed: {message}"


def _escape(text: str) -> str:
    if "\n" in text:
        raise VocabularyError(f"a line end in the middle of a line: {text[:60]!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(f"not Unicode text: {text[:60]!r}") from error
    return text.replace(_ESCAPE, _ESCAPE + "0").replace(_SPACE_MARK, _ESCAPE + "1")


def _unescape(text: str) -> str:
    if _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE + "1", _SPACE_MARK).replace(_ESCAPE + "0", _ESCAPE)
