"""Pronouns, infinitives, passives, comparisons and amounts: a rule each."""

import random

from transformer_ablation.data.grammar import adverbials, phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    Clause,
    Pair,
    Part,
    by_agent,
    is_adjective,
    object_part,
    opening,
    rest_part,
)
from transformer_ablation.data.grammar.events import (
    NO_TIME,
    act,
    add_time,
    event,
    tense_of,
)
from transformer_ablation.data.grammar.lexicon import ADJECTIVES, ADJECTIVES_OF
from transformer_ablation.data.grammar.morphology import ACC, NOM, number_words
from transformer_ablation.data.grammar.phrases import zipf

COLOURS = ("red", "blue", "green", "black", "white", "yellow", "round", "right", "left")
THINGS = ("vehicle", "clothing", "device", "furniture", "thing", "print")


def pronoun_sentence(rng: random.Random) -> Pair:
    """`it` and `they` take the gender of the German antecedent."""
    tense = rng.choice(("past", "past", "present"))
    subject = phrases.person(rng)
    table = tuple(v for v in verbs.TRANSITIVE if set(v.objects) <= set(THINGS))
    verb = zipf(rng, table + verbs.TRANSITIVE[:1], 0.1)
    category = rng.choice([c for c in verb.objects if c in THINGS])
    thing = phrases.common(rng, category, zipf(rng, ("a", "the", "this", "my"), 0.7))
    clause = Clause(subject, verb, (object_part(thing, verb),), tense)
    clause, _ = add_time(rng, clause, 0.4)
    tense = clause.tense
    it = phrases.pronoun_for(thing)
    assert it is not None
    rows = ADJECTIVES[ADJECTIVES_OF[thing.category]]
    adjective = zipf(rng, [a for a in rows if a.en not in COLOURS], 0.4)
    if rng.random() < 0.6:
        side = is_adjective(it, (adjective.en, adjective.de), tense)
        en, de = rng.choice((("because", "weil"), ("although", "obwohl")))
        return (
            f"{clause.english()} {en} {side.english()} .",
            f"{clause.german()} , {de} {side.german_last()} .",
        )
    others = [v for v in verbs.TRANSITIVE if category in v.objects and v is not verb]
    other = zipf(rng, others, 0.2)
    who = phrases.pronoun_for(subject) or phrases.named(rng)
    second = Clause(
        who, other, (object_part(it, other),), tense, pronoun_object=True
    ).settled()
    if rng.random() < 0.5:
        second = second.with_parts(rest_part(*rng.choice(MANNERS)))
    en, de = rng.choice((("but", "aber"), ("and", "und")))
    return (
        f"{clause.english()} , {en} {second.english()} .",
        f"{clause.german()} , {de} {second.german()} .",
    )


MANNERS = (
    ("quickly", "schnell"), ("immediately", "sofort"), ("again", "wieder"),
    ("secretly", "heimlich"), ("with great care", "mit großer Sorgfalt"),
)  # fmt: skip


def comparison(rng: random.Random) -> Pair:
    category = rng.choice(
        ("person", "vehicle", "building", "clothing", "print", "thing")
    )
    one, two = (
        phrases.common(
            rng, category, rng.choice(("the", "my", "this", "of")), adjectives=0.1
        )
        for _ in range(2)
    )
    rows = ADJECTIVES[ADJECTIVES_OF[one.category]]
    adjective = zipf(rng, [a for a in rows if a.comparative], 0.3)
    english = _comparative(adjective.en)
    tense = rng.choice(("present", "present", "past"))
    clause = is_adjective(
        one,
        (f"{english} than {two.en}", f"{adjective.comparative} als {two.de[NOM]}"),
        tense,
    )
    return f"{clause.english()} .", f"{clause.german()} ."


def _comparative(word: str) -> str:
    if word.endswith("y"):
        return word[:-1] + "ier"
    if len(word) > 6:
        return f"more {word}"
    if word in ("big", "red", "hot"):
        return word + word[-1] + "er"
    return word + ("r" if word.endswith("e") else "er")


def infinitive(rng: random.Random) -> Pair:
    """um ... zu, and the zu-infinitives of try, forget and promise."""
    tense = rng.choice(("past", "past", "present"))
    subject = phrases.person(rng)
    table = tuple(
        v for v in verbs.TRANSITIVE if v.de not in ("kennen", "lieben", "vermissen")
    )
    goal = act(rng, "present", phrases.HE, table, exponent=0.1).clause
    if rng.random() < 0.5:
        verb = rng.choice((verbs.TRY, verbs.FORGET, verbs.PROMISE))
        outer = Clause(subject, verb, (), tense)
        outer, time = add_time(rng, outer, 0.4)
        first = time
        english, german = opening(outer, first)
        return (
            f"{english} {goal.english_infinitive()} .",
            f"{german} , {goal.german_infinitive()} .",
        )
    outer = event(rng, tense, subject=subject, plain=True, negated=False).clause
    if outer.verb.de in NO_TIME:
        return infinitive(rng)
    return (
        f"{outer.english()} in order {goal.english_infinitive()} .",
        f"{outer.german()} , um {goal.german_infinitive()} .",
    )


_PASSIVE = set(
    """kaufen finden verkaufen öffnen schreiben reparieren räumen laden
    waschen streichen zeichnen retten beschreiben entdecken entlassen
    verstecken ändern""".split()
)
PASSIVE = tuple(v for v in verbs.TRANSITIVE if v.de in _PASSIVE)


def passive(rng: random.Random) -> Pair:
    verb = zipf(rng, PASSIVE, 0.3)
    subject = phrases.object_of(rng, verb.objects)
    agent = phrases.person(rng, pronouns=False)
    clause = Clause(subject, verb, (by_agent(agent),), "past", passive=True)
    clause, time = add_time(rng, clause, 0.5)
    english, german = opening(clause, time if rng.random() < 0.4 else None)
    return f"{english} .", f"{german} ."


def amount(rng: random.Random) -> Pair:
    """Owners, ages, prices, days and money; `spend` is verbringen or ausgeben."""
    number = rng.randint(2, 99)
    en, de = number_words(number) if rng.random() < 0.7 else (str(number), str(number))
    draw = rng.random()
    if draw < 0.15:
        thing = phrases.common(rng, rng.choice(THINGS), rng.choice(("the", "this")))
        owner = object_part(phrases.person(rng), verbs.BELONG)
        clause = Clause(thing, verbs.BELONG, (owner,), negated=rng.random() < 0.3)
    elif draw < 0.3:
        clause = is_adjective(
            phrases.person(rng), (f"{en} years old", f"{de} Jahre alt"), "present"
        )
    elif draw < 0.5:
        thing = phrases.common(
            rng, rng.choice(THINGS), rng.choice(("the", "this", "my"))
        )
        price = Part(f"{en} euros", f"{de} Euro", 1, 5)
        tense = rng.choice(("present", "past"))
        clause = Clause(thing, verbs.COST, (price,), tense).settled()
    elif draw < 0.75:
        where = rest_part(*adverbials.place(rng))
        stay = (Part(f"{en} days", f"{de} Tage", 1, 5), where)
        clause = Clause(phrases.person(rng), verbs.SPEND_TIME, stay, tense_of(rng))
    else:
        thing = phrases.common(rng, rng.choice(THINGS), "a")
        money = Part(f"{en} euros", f"{de} Euro", 1, 5)
        bought = rest_part(f"on {thing.en}", f"für {thing.de[ACC]}")
        parts = (money, bought)
        clause = Clause(phrases.person(rng), verbs.SPEND_MONEY, parts, tense_of(rng))
        clause, _ = add_time(rng, clause, 0.4)
    return f"{clause.english()} .", f"{clause.german()} ."
