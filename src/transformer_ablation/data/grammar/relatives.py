"""Phrases and sentences with relative clauses."""

import random

from transformer_ablation.data.grammar import phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    Clause,
    Pair,
    is_adjective,
    object_part,
    opening,
    relative,
)
from transformer_ablation.data.grammar.events import add_time, event
from transformer_ablation.data.grammar.lexicon import ADJECTIVES, ADJECTIVES_OF
from transformer_ablation.data.grammar.morphology import GEN, NOM, relative_pronoun
from transformer_ablation.data.grammar.phrases import Phrase, zipf
from transformer_ablation.data.grammar.verbs import Verb


def _who(head: Phrase) -> str:
    return "who" if head.category in ("man", "woman", "child") else "that"


def someone(rng: random.Random) -> Phrase | None:
    """Now and then a person with a relative clause, else None."""
    return with_relative(rng, "person") if rng.random() < 0.16 else None


def with_relative(
    rng: random.Random,
    category: str,
    adjectives: float = 0.2,
    avoid: Verb | None = None,
) -> Phrase:
    """A phrase whose relative pronoun has its gender and the case of its role."""
    style = zipf(rng, ("the", "this", "a"), 1.5)
    head = phrases.common(rng, category, style, adjectives=adjectives)
    tense = rng.choice(("past", "past", "present"))
    if category == "person" and rng.random() < 0.55:
        found = event(rng, tense, subject=head, negated=False).clause
        found, _ = add_time(rng, found, 0.3)
        german = found.german_last(relative_pronoun(head.slot, NOM))
        return relative(head, f"who {found.english_without(None, False)}", german)
    if category == "person" and rng.random() < 0.3:
        noun = phrases.common(
            rng, rng.choice(("animal", "vehicle", "clothing")), "the", adjectives=0
        )
        en, de = noun.en.removeprefix("the "), noun.de[NOM].partition(" ")[2]
        adjective = zipf(rng, ADJECTIVES[ADJECTIVES_OF[noun.category]], 0.7)
        clause = is_adjective(noun, (adjective.en, adjective.de), tense)
        german = clause.german_last(f"{relative_pronoun(head.slot, GEN)} {de}")
        return relative(
            head, f"whose {en} {clause.english_without(None, False)}", german
        )
    return _object_relative(rng, head, tense, avoid)


def _object_relative(
    rng: random.Random, head: Phrase, tense: str, avoid: Verb | None
) -> Phrase:
    group = "person" if head.category in ("man", "woman", "child") else head.category
    group = "thing" if group in ("upright", "flat") else group
    tables = (verbs.TRANSITIVE, verbs.DATIVE, verbs.PREPOSITIONAL)
    table = rng.choices(tables, (5, 2, 2))[0]
    fitting = (v for v in table if group in v.objects and v is not avoid)
    usable = tuple(fitting) or verbs.TRANSITIVE[1:2]
    verb = zipf(rng, usable, 0.3)
    tense = "present" if verb.de in ("kennen", "lieben") else tense
    hole = object_part(head, verb)
    clause = Clause(phrases.person(rng), verb, (hole,), tense)
    clause, _ = add_time(rng, clause, 0.3)
    pronoun = relative_pronoun(head.slot, verb.case)
    german = f"{verb.preposition} {pronoun} {clause.german_last(skip=hole)}".strip()
    word = "whom" if _who(head) == "who" else "that"
    return relative(head, f"{word} {clause.english_without(hole)}", german)


def relative_sentence(rng: random.Random) -> Pair:
    """A relative clause at the subject or at the object."""
    tense = rng.choice(("past", "present"))
    if rng.random() < 0.5:
        subject = with_relative(rng, "person")
        clause = event(rng, tense, subject=subject, plain=rng.random() < 0.6).clause
    elif rng.random() < 0.5:
        category = rng.choice(
            ("print", "vehicle", "clothing", "device", "furniture", "building")
        )
        subject = with_relative(rng, category, adjectives=0.0)
        adjective = zipf(rng, ADJECTIVES[ADJECTIVES_OF[category]], 0.5)
        clause = is_adjective(subject, (adjective.en, adjective.de), tense)
    else:
        table = tuple(v for v in verbs.TRANSITIVE if v.de not in ("kennen", "lieben"))
        verb = zipf(rng, table, 0.3)
        target = with_relative(rng, zipf(rng, verb.objects, 0.5), avoid=verb)
        clause = Clause(phrases.person(rng), verb, (object_part(target, verb),), tense)
        clause, first = add_time(rng, clause, 0.4)
        english, german = opening(clause, first)
        return f"{english} .", f"{german} ."
    return f"{clause.english()} .", f"{clause.german()} ."
