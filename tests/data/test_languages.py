"""Lines in the wrong language, of languages that nobody has named."""

import pytest

from transformer_ablation.data.languages import Typical, learn, sample_of

ENGLISH = (
    "the of and to in is that it was for on are with as his they at be this "
    "from".split()
)
GERMAN = (
    "der die und den von das mit sich des auf für ist nicht ein eine als auch es an "
    "werden".split()
)
CHINESE = "的一是不了人我在有他这中"


def test_typical_words_are_frequent_on_one_side_alone():
    english = " ".join(ENGLISH).title()
    german = " ".join(GERMAN)
    pairs = [(f"{german} Berlin x{i}", f"{english} Berlin {i}") for i in range(30)]
    # "or" in four lines is too rare; "so" in five here and one there is enough,
    # "no" in five and two is not.
    pairs += [("so no", "so no or"), ("no", "so no or")]
    pairs += [("", "so no or"), ("", "so no or"), ("", "so no")]
    typical = learn(pairs)
    assert typical == Typical("words", (frozenset(GERMAN), frozenset([*ENGLISH, "so"])))


def test_languages_without_spaces_are_told_apart_by_characters():
    english = " ".join(ENGLISH)
    pairs = []
    for i in range(12):
        turned = CHINESE[i:] + CHINESE[:i]  # never the same word twice
        pairs.append((turned, f"{english} {i}"))
    typical = learn(pairs)
    assert typical is not None and typical.unit == "characters"
    assert typical.sides == (frozenset(CHINESE), frozenset("".join(ENGLISH)))
    words = [["的一是我"], ["的一是", "microsoft"], ["abcdefghimno"], ["abc", "def"]]
    assert typical.misplaced(words, 0) == [2]


@pytest.mark.parametrize("pairs", [[], [("a", "b")] * 50, [("a b c", "a b c")] * 50])
def test_too_little_to_go_by_is_none(pairs):
    assert learn(pairs) is None


@pytest.mark.parametrize(
    ("line", "misplaced"),
    [
        ("the of and", True),
        ("the of of the", False),  # two different words
        ("the of and der", False),  # three are not more than three times one
        ("the of and to der", True),
        ("der die und", False),
        ("", False),
    ],
)
def test_line_of_the_other_language_by_hand(line, misplaced):
    typical = Typical("words", (frozenset(GERMAN), frozenset(ENGLISH)))
    expected = [1] if misplaced else []
    assert typical.misplaced([["der"], line.split()], 0) == expected
    assert typical.misplaced([[], line.split()], 1) == (
        [1] if "der die" in line else []
    )


def test_sample_is_all_of_a_small_split_and_spread_over_a_large_one():
    assert sample_of(3) == [range(3)]
    assert sample_of(16_384) == [range(16_384)]
    for length in (16_385, 4_500_000):
        parts = sample_of(length)
        assert sum(len(set(part)) for part in parts) == 16_384
        assert len({i for part in parts for i in part}) == 16_384
        assert parts[0].start == 0 and parts[-1].stop == length
