"""The synchronous rules: sentence types built from events, and `generate`."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator

from transformer_ablation.data.grammar import homonyms, phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    Clause,
    Pair,
    opening,
)
from transformer_ablation.data.grammar.constructions import (
    amount,
    comparison,
    infinitive,
    passive,
    pronoun_sentence,
)
from transformer_ablation.data.grammar.events import (
    add_time,
    circumstance,
    event,
    tense_of,
)
from transformer_ablation.data.grammar.phrases import zipf
from transformer_ablation.data.grammar.questions import question
from transformer_ablation.data.grammar.relatives import relative_sentence, someone

MIN_WORDS, MAX_WORDS = 5, 30


def statement(rng: random.Random) -> Pair:
    """One clause, in a third of the cases with its time in front."""
    clause, time = add_time(rng, event(rng, tense_of(rng)).clause, 0.75)
    first = time if time and rng.random() < 0.45 else None
    english, german = opening(clause, first)
    return f"{english} .", f"{german} ."


def subordinate(rng: random.Random) -> Pair:
    """weil, obwohl, wenn, als, während ...: before or behind the main clause."""
    kind = rng.choice(("because", "because", "although", "when", "when", "if", "while"))
    tense = rng.choice(("past", "past", "present")) if kind != "if" else "present"
    german_kind = {
        "because": "weil",
        "although": "obwohl",
        "if": "wenn",
        "while": "während",
    }
    link = german_kind.get(kind) or ("als" if tense == "past" else "wenn")
    later = "future" if kind == "if" and rng.random() < 0.5 else tense
    main = event(rng, later, someone(rng)).clause
    side = circumstance(rng, tense, main.subject)
    main, _ = add_time(rng, main, 0.25 if kind in ("because", "although") else 0.0)
    if kind in ("when", "if"):
        main, side = _not_progressive(main), _not_progressive(side)
    german_side = f"{link} {side.german_last()}"
    if rng.random() < 0.4:
        main = dataclasses.replace(main, often=("", ""))
        return (
            f"{kind} {side.english()} , {main.english()} .",
            f"{main.german(german_side + ' ,')} .",
        )
    english, german = opening(main)
    return f"{english} {kind} {side.english()} .", f"{german} , {german_side} ."


def _not_progressive(clause: Clause) -> Clause:
    simple = "present" if clause.tense == "progressive" else clause.tense
    return dataclasses.replace(clause, tense=simple)


def reported(rng: random.Random) -> Pair:
    """dass, ob and wh-clauses; with them, `know` is wissen."""
    tense = rng.choice(("past", "present"))
    subject = phrases.person(rng)
    inner = event(rng, tense if rng.random() < 0.7 else "future", someone(rng)).clause
    if tense == "past" and inner.tense == "future":
        inner = dataclasses.replace(inner, tense="past", often=("", ""))
    inner, _ = add_time(rng, inner, 0.25)
    if rng.random() < 0.55:
        verb = zipf(rng, verbs.REPORTING, 0.3)
        outer = Clause(subject, verb, (), tense)
        return (
            f"{outer.english()} that {inner.english()} .",
            f"{outer.german()} , dass {inner.german_last()} .",
        )
    outer = Clause(subject, verbs.KNOW, (), tense, negated=rng.random() < 0.6)
    words = [("why", "warum"), ("when", "wann"), ("that", "dass")]
    words = words[:2] + [("whether", "ob")] if outer.negated else words
    en, de = rng.choice(words)
    if en == "when":
        inner, _ = add_time(rng, event(rng, tense, plain=True).clause, 0.0)
    return (
        f"{outer.english()} {en} {inner.english()} .",
        f"{outer.german()} , {de} {inner.german_last()} .",
    )


def coordination(rng: random.Random) -> Pair:
    tense = rng.choice(("past", "present"))
    one, _ = add_time(rng, event(rng, tense, someone(rng), plain=True).clause, 0.3)
    two = event(rng, tense).clause
    en, de = rng.choice((("and", "und"), ("but", "aber")))
    return (
        f"{one.english()} , {en} {two.english()} .",
        f"{one.german()} , {de} {two.german()} .",
    )


def homonym(rng: random.Random) -> Pair:
    return (homonyms.far_predicate if rng.random() < 0.5 else homonyms.far_reason)(rng)


RULES: tuple[tuple[Callable[[random.Random], Pair], int], ...] = (
    (statement, 40), (subordinate, 14), (reported, 7), (relative_sentence, 12),
    (question, 12), (pronoun_sentence, 7), (homonym, 8), (coordination, 3),
    (infinitive, 6), (passive, 6), (comparison, 3), (amount, 4),
)  # fmt: skip
_CUMULATIVE = tuple(itertools.accumulate(weight for _, weight in RULES))


def tidy(text: str) -> str:
    """Joins punctuation to its word, drops doubled commas, capitalises the start."""
    words: list[str] = []
    for word in text.split():
        if word in ",.?":
            words[-1] = words[-1].removesuffix(",") + word
        else:
            words.append(word)
    line = " ".join(words)
    return line[0].upper() + line[1:]


def sentences(seed: int) -> Iterator[Pair]:
    """Endless distinct pairs of 5 to 30 words on each side."""
    rng = random.Random(seed)
    rules = [rule for rule, _ in RULES]
    seen: set[str] = set()
    while True:
        english, german = map(tidy, rng.choices(rules, cum_weights=_CUMULATIVE)[0](rng))
        counts = (len(english.split()), len(german.split()))
        fits = min(counts) >= MIN_WORDS and max(counts) <= MAX_WORDS
        if fits and english not in seen and german not in seen:
            seen |= {english, german}
            yield english, german


def generate(seed: int, count: int) -> Iterator[Pair]:
    """The first `count` pairs of a seed, distinct in English and in German."""
    return itertools.islice(sentences(seed), count)
