"""Words, n-grams and buckets against counts made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.comparison.written_runs import BASE, OTHER, REFERENCES
from transformer_ablation.report.comparison import words
from transformer_ablation.report.comparison.differing import segments
from transformer_ablation.report.comparison.intervals import buckets, place


def split(lines):
    return [line.split() for line in lines]


# the 5, cat 2, dog 2, and seven words once: sat on mat a barks end saw.
FREQUENCY = words.frequencies(split(REFERENCES))
STARTS = (1, 2, 5)


def test_buckets_cover_every_number_once():
    found = buckets((1, 2, 5, 10))
    assert [b.label for b in found] == ["0", "1", "2-4", "5-9", "10+"]
    for number in range(30):
        inside = [
            b.low <= number and (b.high is None or number <= b.high) for b in found
        ]
        assert inside.index(True) == place((1, 2, 5, 10), number)
        assert sum(inside) == 1


def test_accuracy_by_frequency_is_counted_with_clipping():
    unseen, once, few, often = words.accuracies(
        split(BASE), split(REFERENCES), FREQUENCY, STARTS
    )
    assert unseen == (0, 0, 0)
    assert unseen.f1 is unseen.precision is unseen.recall is None
    assert once == (8, 7, 7)  # "a" of the fourth line matches nothing
    assert (once.precision, once.recall) == (7 / 8, 1.0)
    assert once.f1 == pytest.approx(2 / (8 / 7 + 1))
    assert few == (4, 4, 3)
    assert often == (4, 5, 4)
    # Three "the" for two in the reference: two match.
    _, once, few, often = words.accuracies(
        split(OTHER), split(REFERENCES), FREQUENCY, STARTS
    )
    assert (once, few, often) == ((6, 7, 5), (3, 4, 3), (5, 5, 4))
    assert often.f1 == pytest.approx(0.8)


def test_word_of_a_hypothesis_alone_has_no_recall_but_f1_zero():
    (found,) = words.accuracies([["x", "x"]], [[]], {}, ())
    assert found == (2, 0, 0)
    assert (found.precision, found.recall, found.f1) == (0.0, None, 0.0)


def test_ngrams_one_side_gets_are_ranked_by_the_smoothed_part():
    counts = [words.ngram_counts(split(x), split(REFERENCES)) for x in (BASE, OTHER)]
    first, second = words.distinctive(*counts, split(REFERENCES), 100)
    # 1 to 0 is (1 + 1) / (1 + 0 + 2); longer ones first, then by letters.
    assert [n.words for n in first[:4]] == [
        "cat sat on the",
        "sat on the mat",
        "the cat sat on",
        "cat sat on",
    ]
    assert {n.score for n in first[:-1]} == {2 / 3}
    assert first[-1] == ("cat", 2, 1, 2, 3 / 5)
    assert [n[:4] for n in second] == [
        ("a dog barks", 0, 1, 1),
        ("a dog", 0, 1, 1),
        ("dog barks", 0, 1, 1),
        ("dog", 1, 2, 2),
    ]
    assert words.distinctive(*counts, split(REFERENCES), 2)[1] == second[:2]
    thrice = words.distinctive(*counts, split(REFERENCES), 1, pairs=3)[1]
    assert thrice == [("a dog barks", 0, 1, 3, 2 / 3)]


def test_what_is_added_and_what_is_missed():
    over = words.ngram_counts(split(OTHER[:1]), split(REFERENCES[:1]), "over")
    assert over == {
        "the": 1,
        "the the": 2,
        "the the the": 1,
        "the the mat": 1,
        "the the the mat": 1,
    }
    under = words.ngram_counts([["a"]], [["a", "b"]], "under")
    assert under == {"b": 1, "a b": 1}


def test_segments_are_in_turn_the_same_and_different():
    assert segments("a b c", "a x c", False) == (["a ", "b ", "c"], ["a ", "x ", "c"])
    # A full stop is no part of the word before it.
    assert segments("Er hat am 12 Wein.", "Er hat am 12.", False) == (
        ["Er hat am 12 ", "Wein", "."],
        ["Er hat am 12."],
    )
    assert segments("", "x", False) == ([""], ["", "x"])
    assert segments("猫坐下", "狗坐下", True) == (
        ["", "猫", "坐下"],
        ["", "狗", "坐下"],
    )


@given(st.text("ab .\t\u05d0", max_size=12), st.text("ab .\t\u05d0", max_size=12))
def test_segments_join_to_the_texts(first, second):
    for spaceless in (False, True):
        left, right = segments(first, second, spaceless)
        assert ("".join(left), "".join(right)) == (first, second)
        same = ["".join("".join(parts[::2]).split()) for parts in (left, right)]
        assert same[0] == same[1]
