"""Questions: with and without a question word."""

import dataclasses
import random

from transformer_ablation.data.grammar import phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    Clause,
    Pair,
    Part,
)
from transformer_ablation.data.grammar.events import (
    add_time,
    event,
    tense_of,
)
from transformer_ablation.data.grammar.morphology import (
    ACC,
    article,
)
from transformer_ablation.data.grammar.phrases import Phrase, zipf


def question(rng: random.Random) -> Pair:
    """Yes/no questions, and those with who, what, where, when, why, which."""
    tense = tense_of(rng)
    subject = phrases.YOU if rng.random() < 0.3 else None
    found = event(rng, tense, subject=subject, negated=False)
    clause, time = add_time(rng, found.clause, 0.5)
    kind = rng.choice(("yes", "yes", "why", "when", "what", "which", "who"))
    target = found.object
    named = target is None or _is_person(target) or target.category == "animal"
    if kind == "what" and not (named or clause.verb.preposition):
        german = _asked(clause, "was", found.part)
        return clause.english_question("what", found.part) + " ?", german
    if kind == "which":
        return which_question(rng)
    if kind == "who":
        inner = event(rng, tense, phrases.named(rng)).clause
        inner = dataclasses.replace(
            inner, subject=phrases.Phrase("who", ("wer",) * 4, "m")
        )
        inner, _ = add_time(rng, inner, 0.4)
        return f"{inner.english()} ?", f"{inner.german()} ?"
    if kind == "when" and clause.tense == "progressive":
        clause = dataclasses.replace(clause, tense="present")
    if kind in ("why", "when") and not (kind == "when" and time):
        word = "warum" if kind == "why" else "wann"
        return clause.english_question(kind) + " ?", clause.german(word) + " ?"
    return clause.english_question() + " ?", _asked(clause, "", None)


def _asked(clause: Clause, word: str, hole: Part | None) -> str:
    parts = tuple(part for part in clause.parts if part is not hole)
    return dataclasses.replace(clause, parts=parts).german(word) + " ?"


def _is_person(phrase: Phrase) -> bool:
    return phrase.category in ("man", "woman", "child", "")


def which_question(rng: random.Random) -> Pair:
    category = rng.choice(("print", "clothing", "vehicle", "building", "animal"))
    table = tuple(v for v in verbs.TRANSITIVE if category in v.objects)
    noun, _ = phrases.pick_noun(rng, category)
    verb = zipf(rng, table, 0.2)
    tense = (
        "present" if verb.de in ("kennen", "lieben") else rng.choice(("past", "future"))
    )
    clause = Clause(phrases.person(rng), verb, (), tense)
    clause, _ = add_time(rng, clause, 0.4)
    german = f"{article('welch', noun.gender, ACC)} {noun.de}"
    if noun.weak:
        german = f"{article('welch', noun.gender, ACC)} {noun.de_plural}"
    return clause.english_question(f"which {noun.en}") + " ?", clause.german(
        german
    ) + " ?"
