"""Random events that make sense: who does what to whom, where and when."""

import dataclasses
import random
from collections.abc import Sequence

from transformer_ablation.data.grammar import adverbials, names, phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    EN_REST,
    Clause,
    Part,
    dative_part,
    is_adjective,
    object_part,
    place_part,
    rest_part,
    time_part,
)
from transformer_ablation.data.grammar.lexicon import ADJECTIVES
from transformer_ablation.data.grammar.morphology import ACC, DAT
from transformer_ablation.data.grammar.phrases import Phrase, zipf
from transformer_ablation.data.grammar.verbs import Verb

ALWAYS_PRESENT = {"kennen", "lieben"}
NO_TIME = {
    "kennen",
    "lieben",
    "verstehen",
    "vermissen",
    "vertrauen",
    "glauben",
    "denken",
    "wohnen",
}
PLACEABLE = set(
    """essen lesen finden suchen trinken treffen schreiben reparieren verlieren zeichnen
    verstecken singen vergessen warten sprechen streiten entdecken""".split()
)
OFTEN = (
    ("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"),
    ("never", "nie"), ("usually", "meistens"), ("rarely", "selten"),
)  # fmt: skip
GAMES = (
    ("the piano", "Klavier"), ("football", "Fußball"), ("chess", "Schach"),
    ("the guitar", "Gitarre"), ("cards", "Karten"), ("the violin", "Geige"),
    ("hide-and-seek", "Verstecken"), ("tennis", "Tennis"), ("the flute", "Flöte"),
)  # fmt: skip
MODALS = ("can", "have to", "want to", "should", "be allowed to")


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """A clause, and its object as phrase and part where it has one."""

    clause: Clause
    object: Phrase | None = None
    part: Part | None = None


def shade(rng: random.Random, clause: Clause, negated: bool, plain: bool) -> Clause:
    """Adds future, progressive, modal, frequency or gern; `plain` leaves all out."""
    draw = rng.random()
    if plain or clause.verb.de in NO_TIME:
        changes: dict = {}
    elif clause.tense == "future":
        changes = {}
    elif draw < 0.2:
        past = clause.tense == "past"
        modal = zipf(rng, MODALS if not past else MODALS[:3], 0.5)
        changes = {"modal": modal}
    elif clause.tense == "past" or negated:
        changes = {}
    elif draw < 0.32:
        changes = {"tense": "progressive"}
    elif draw < 0.44:
        changes = {"often": zipf(rng, OFTEN, 0.6)}
    elif draw < 0.5 and not clause.subject.kein:
        changes = {"gern": True}
    else:
        changes = {}
    return dataclasses.replace(clause, negated=negated, **changes)


def _other(
    rng: random.Random, subject: Phrase, negative: bool, categories: Sequence[str]
) -> Phrase:
    """An object that is not `me` or `us` beside I or we."""
    found = phrases.object_of(rng, categories, negative)
    first_person = {"I", "we"}
    if found.en in first_person and subject.en in first_person:
        return phrases.named(rng)
    return found


def act(
    rng: random.Random, tense: str, subject: Phrase, table: tuple[Verb, ...],
    negated: bool = False, exponent: float = 0.5,
) -> Event:  # fmt: skip
    """Someone does something to an object that the verb allows."""
    verb = zipf(rng, table, exponent)
    while verb.de in ALWAYS_PRESENT and tense != "present":
        verb = zipf(rng, table, exponent)
    target = _other(rng, subject, negated and not verb.preposition, verb.objects)
    part = object_part(target, verb)
    clause = Clause(
        subject, verb, (part,), tense, kein=target.kein, pronoun_object=target.pronoun
    )
    if verb.de in PLACEABLE and rng.random() < 0.25:
        clause = clause.with_parts(place_part(adverbials.place(rng)))
    return Event(clause, target, part)


def give(rng: random.Random, tense: str, subject: Phrase, negated: bool) -> Event:
    """Someone gives something to someone: two English orders, one German."""
    explaining = rng.random() < 0.25
    verb = zipf(rng, verbs.EXPLAINING if explaining else verbs.DITRANSITIVE, 0.5)
    thing = phrases.object_of(rng, verb.objects, negated)
    receiver = _other(rng, subject, False, ("person",))
    behind = explaining or rng.random() < 0.3
    receiver_part = dative_part(receiver, EN_REST) if behind else dative_part(receiver)
    part = object_part(thing, verb)
    clause = Clause(subject, verb, (part, receiver_part), tense, kein=thing.kein)
    return Event(clause, thing, part)


def go(rng: random.Random, tense: str, subject: Phrase) -> Event:
    """Motion; how one `goes` depends on the last word: on foot, by train, by plane."""
    draw = rng.random()
    if draw < 0.25:
        target = phrases.common(rng, "building", "the", adjectives=0.2, plurals=0.0)
        direction = (f"to {target.en}", phrases.prepositional("zu", target, DAT))
    elif draw < 0.4:
        category = rng.choice(("room", "outdoors"))
        target = phrases.common(rng, category, "the", plurals=0.0)
        direction = (f"into {target.en}", phrases.prepositional("in", target, ACC))
        return Event(
            Clause(subject, verbs.MOTION["run"], (rest_part(*direction),), tense)
        )
    else:
        en, de = zipf(rng, names.TOWNS, 0.7)
        direction = (f"to {en}", f"nach {de}")
        if rng.random() < 0.25:
            verb = verbs.MOTION[rng.choice(("move", "travel"))]
            return Event(Clause(subject, verb, (rest_part(*direction),), tense))
    means = [("on foot", "zu Fuß", "foot"), ("by train", "mit dem Zug", "drive")]
    means += [
        ("by bus", "mit dem Bus", "drive"),
        ("by bicycle", "mit dem Fahrrad", "drive"),
    ]
    means += [("by car", "mit dem Auto", "drive")]
    if direction[1].startswith("nach"):
        means = means[1:] + [("by plane", "mit dem Flugzeug", "fly")] * 3
    en, de, key = rng.choice(means)
    route = Part(f"{direction[0]} {en}", f"{de} {direction[1]}", EN_REST, 7)
    return Event(Clause(subject, verbs.MOTION[key], (route,), tense))


def put(rng: random.Random, tense: str, subject: Phrase, negated: bool) -> Event:
    """`put`: stellen what stands, legen what lies; the place is accusative."""
    category = rng.choice(("upright", "flat"))
    verb = verbs.PLACING[category]
    thing = phrases.common(rng, category, negative=negated)
    part = object_part(thing, verb)
    where = place_part(adverbials.spot(rng, ACC))
    return Event(
        Clause(subject, verb, (part, where), tense, kein=thing.kein), thing, part
    )


def be_somewhere(rng: random.Random, tense: str, subject: Phrase) -> Event:
    draw = rng.random()
    if draw < 0.3:
        verb, where = zipf(rng, verbs.POSITION, 0.3), adverbials.spot(rng, DAT)
    elif draw < 0.7:
        verb, where = zipf(rng, verbs.STAYING, 0.2), adverbials.place(rng)
    elif draw < 0.85:
        verb, where = verbs.PLAY, zipf(rng, GAMES, 0.4)
    else:
        return Event(Clause(subject, zipf(rng, verbs.INTRANSITIVE, 0.4), (), tense))
    return Event(Clause(subject, verb, (place_part(where),), tense))


def animal_event(rng: random.Random, tense: str, negated: bool) -> Event:
    subject = phrases.common(rng, "animal")
    if rng.random() < 0.6:
        return act(rng, tense, subject, verbs.ANIMAL_TRANSITIVE, negated, 0.4)
    draw = rng.random()
    if draw < 0.5:
        return Event(
            Clause(subject, zipf(rng, verbs.ANIMAL_INTRANSITIVE, 0.2), (), tense)
        )
    where = (
        adverbials.spot(rng, DAT) if draw < 0.75 else adverbials.place(rng, "outdoors")
    )
    return Event(
        Clause(subject, zipf(rng, verbs.POSITION, 0.3), (place_part(where),), tense)
    )


def event(
    rng: random.Random, tense: str, subject: Phrase | None = None, plain: bool = False,
    negated: bool | None = None,
) -> Event:  # fmt: skip
    """Any event, without its time; a given `subject` has to be a person."""
    if negated is None:
        negated = not plain and rng.random() < 0.12
    draw = rng.random()
    if draw < 0.12 and subject is None:
        found = animal_event(rng, tense, negated)
        shaded = dataclasses.replace(found.clause, negated=negated)
        return dataclasses.replace(found, clause=shaded)
    subject = subject or phrases.person(rng)
    if draw < 0.52:
        found = act(rng, tense, subject, verbs.TRANSITIVE, negated)
    elif draw < 0.6:
        found = act(rng, tense, subject, verbs.PREPOSITIONAL, negated)
    elif draw < 0.67:
        found = act(rng, tense, subject, verbs.DATIVE)
    elif draw < 0.77:
        found = give(rng, tense, subject, negated)
    elif draw < 0.83:
        found = put(rng, tense, subject, negated)
    elif draw < 0.9:
        found = go(rng, tense, subject)
    else:
        found = be_somewhere(rng, tense, subject)
    clause = shade(rng, found.clause, negated, plain)
    if clause.english_is_ambiguous:
        return event(rng, tense, subject, plain, negated)
    return dataclasses.replace(found, clause=clause)


def add_time(
    rng: random.Random, clause: Clause, chance: float
) -> tuple[Clause, Part | None]:
    """The clause with a time that suits its tense, and that part (None without)."""
    clause = clause.settled()
    rival = (
        clause.often[0]
        or clause.gern
        or clause.modal == "can"
        or clause.verb.de in NO_TIME
    )
    if rival or clause.tense == "progressive" or rng.random() > chance:
        return clause, None
    part = time_part(adverbials.time(rng, clause.tense))
    return clause.with_parts(part), part


def mood(rng: random.Random, subject: Phrase, tense: str) -> Clause:
    adjective = zipf(rng, ADJECTIVES["mood"], 0.6)
    return is_adjective(subject, (adjective.en, adjective.de), tense)


WEATHER = (
    ("cold", "kalt"), ("hot", "heiß"), ("late", "spät"), ("dark", "dunkel"),
    ("windy", "windig"), ("foggy", "neblig"),
)  # fmt: skip


def weather(rng: random.Random, tense: str) -> Clause:
    impersonal = phrases.IT["n"]
    draw = rng.random()
    if draw < 0.5 or tense == "future":
        return is_adjective(impersonal, zipf(rng, WEATHER, 0.5), tense)
    return Clause(impersonal, verbs.RAIN if draw < 0.8 else verbs.SNOW, (), tense)


def circumstance(rng: random.Random, tense: str, about: Phrase) -> Clause:
    """Something that can be a reason or a condition for an event about someone."""
    taken_up = phrases.pronoun_for(about)
    draw = rng.random()
    if draw < 0.3:
        return weather(rng, tense)
    if draw < 0.6 and taken_up and not about.en.startswith(("every", "many")):
        return mood(rng, taken_up, tense)
    if draw < 0.7:
        return mood(rng, phrases.person(rng, pronouns=False), tense)
    return event(rng, tense, plain=rng.random() < 0.7).clause


def tense_of(rng: random.Random) -> str:
    return zipf(rng, ("past", "present", "future"), 1.0)
