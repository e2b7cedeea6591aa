"""Sentences of any length and any characters are evaluated, in bounded memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.test_batches import split_of
from transformer_ablation import config
from transformer_ablation.data.batches import evaluation_batches
from transformer_ablation.data.tokens import prepare
from transformer_ablation.vocabulary import BOS, EOS, PAD, UNK

TEXT = ["A dog runs", "Ein Hund läuft", "The cats sleep a very long time here"]


def shapes_of(batches):
    return [(*batch.source.shape, batch.target.shape[1]) for batch in batches]


def test_one_endless_sentence_among_many_short_ones():
    """It is alone in its batch, and the others are batched as if it were not there."""
    short = [(9, 5)] * 1000
    alone = shapes_of(evaluation_batches(split_of(short), 64))
    assert alone == [(64, 16, 8)] * 16
    # 256 -> 512 -> 1,024 -> 2,048: a 64th of 64 rows.
    batches = evaluation_batches(
        split_of([*short[:500], (1500, 1100), *short[500:]]), 64
    )
    assert shapes_of(batches) == [*alone, (1, 1504, 1104)]
    assert batches[-1].indices.tolist() == [500]
    assert (batches[-1].source != PAD).sum() == 1500


@pytest.mark.parametrize(
    ("length", "row_multiple", "rows"),
    [
        (256, 4, 64),
        (257, 4, 16),  # a quarter
        (512, 4, 16),
        (513, 4, 4),
        (1024, 1, 4),
        (1024, 3, 3),
        (1025, 1, 1),
        (1025, 4, 4),  # one a device is the least there can be
        (40_000, 8, 8),
    ],
)
def test_rows_of_long_sentences(length, row_multiple, rows):
    """rows x length^2 stays within 64 x 256^2 unless one row a device needs more."""
    for lengths in ((length, 3), (3, length)):
        batches = evaluation_batches(
            split_of([lengths] * 5), 64, row_multiple=row_multiple
        )
        assert {batch.source.shape[0] for batch in batches} == {rows}
        assert sum(len(batch.indices) for batch in batches) == 5


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 3000)), min_size=1),
    st.integers(1, 40),
    st.sampled_from([1, 2, 4]),
)
def test_memory_and_shapes_are_bounded_for_any_lengths(lengths, rows, devices):
    rows *= devices
    batches = evaluation_batches(split_of(lengths), rows, row_multiple=devices)
    seen = [i for batch in batches for i in batch.indices]
    assert sorted(seen) == list(range(len(lengths)))
    for batch in batches:
        assert batch.source.shape[0] % devices == 0
        size = max(batch.source.shape[1], batch.target.shape[1])
        assert batch.source.shape[0] * size**2 <= max(rows * 256**2, devices * size**2)
        for row, i in enumerate(batch.indices):
            assert (batch.source[row] != PAD).sum() == lengths[i][0]
    # Up to 256, 512, 1,024, 2,048 and 4,096.
    assert len(set(shapes_of(batches))) <= 3 + 4


def test_long_sentences_stay_within_learned_positions():
    batches = evaluation_batches(split_of([(1497, 1498), (5, 5)]), 4, longest=1499)
    assert shapes_of(batches) == [(4, 8, 8), (1, 1499, 1499)]


# Text, and its pieces: a word mark, and one for every byte of UTF-8.
UNSEEN = [
    ("猫", 1 + 3),
    ("𓀀𓀁", 1 + 8),
    ("Щи", 1 + 4),
    ("\x00\x01", 1 + 2),
    ("🐕\r", 1 + 5),
]


def test_unseen_characters_are_pieces_and_not_padding(base_config, tmp_path):
    """From the files of a corpus to the batches that are scored and decoded."""
    texts = {"train": TEXT, "val": [text for text, _ in UNSEEN]}
    for name, lines in texts.items():
        for language in ("en", "de"):
            content = "".join(f"{line}\n" for line in lines).encode()
            (tmp_path / f"{name}.{language}").write_bytes(content)
    changes = {
        "data.corpus": "multi30k",
        "data.directory": str(tmp_path),
        "data.test_split": None,
        "data.vocabulary_size": 300,
    }
    prepared = prepare(config.replace(base_config, changes).data, tmp_path / "cache")
    (batch,) = evaluation_batches(prepared.validation, rows=6)
    for side in (batch.source, batch.target):
        assert (side[5] == PAD).all()  # a row without a sentence
        for row, i in enumerate(batch.indices):
            text, count = UNSEEN[i]
            ids = side[row, : count + 1].tolist()
            assert ids[-1] == EOS and not {PAD, UNK, BOS, EOS} & set(ids[:-1])
            assert (side[row, count + 1 :] == PAD).all()
            assert prepared.vocabulary.decode(ids) == text
