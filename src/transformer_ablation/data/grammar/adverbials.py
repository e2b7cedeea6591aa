"""Places and times, in both languages at once."""

import random

from transformer_ablation.data.grammar import morphology, names
from transformer_ablation.data.grammar.morphology import DAT
from transformer_ablation.data.grammar.phrases import common, prepositional, zipf

MONTHS = """January/Januar February/Februar March/März April May/Mai June/Juni July/Juli
August September October/Oktober November December/Dezember""".split()
DAYS = """Monday/Montag Tuesday/Dienstag Wednesday/Mittwoch Thursday/Donnerstag
Friday/Freitag Saturday/Samstag Sunday/Sonntag""".split()
SPOTS = (("on", "auf"), ("under", "unter"), ("next to", "neben"), ("behind", "hinter"))


def spot(rng: random.Random, case: int, category: str = "furniture") -> tuple[str, str]:
    """`on the table`, with the dative of rest or the accusative of movement."""
    first = 0 if category == "furniture" else 2
    en, de = zipf(rng, SPOTS[first:], 1.0)
    style = zipf(rng, ("the", "my", "of", "this"), 1.5)
    phrase = common(rng, category, style, adjectives=0.25, plurals=0.0)
    return f"{en} {phrase.en}", prepositional(de, phrase, case)


def place(rng: random.Random, category: str = "place") -> tuple[str, str]:
    """Where something happens: `in the kitchen`, `im Garten`, `in Oslo`."""
    draw = rng.random()
    if draw < 0.12:
        en, de = zipf(rng, names.TOWNS)
        return f"in {en}", f"in {de}"
    if draw < 0.25:
        return spot(rng, DAT, "landmark")
    style = zipf(rng, ("the", "a", "my", "of"), 1.8)
    phrase = common(rng, category, style, adjectives=0.25, plurals=0.0)
    return f"in {phrase.en}", prepositional("in", phrase, DAT)


def date(rng: random.Random, year: bool) -> tuple[str, str]:
    en, _, de = rng.choice(MONTHS).partition("/")
    day = rng.randint(1, 28)
    tail = f" {rng.randint(1890, 2019)}" if year and rng.random() < 0.4 else ""
    return f"on {day} {en}{tail}", f"am {day}. {de or en}{tail}"


def clock(rng: random.Random) -> tuple[str, str]:
    """`at half past three` is `um halb vier`."""
    hour, minute = rng.randint(2, 11), rng.randint(10, 59)
    en, de = morphology.number_words(hour)
    later = morphology.number_words(hour + 1)
    return rng.choice((
        (f"at {en} o'clock", f"um {de} Uhr"),
        (f"at half past {en}", f"um halb {later[1]}"),
        (f"at quarter past {en}", f"um Viertel nach {de}"),
        (f"at quarter to {later[0]}", f"um Viertel vor {later[1]}"),
        (f"at {hour + 12}:{minute}", f"um {hour + 12}.{minute} Uhr"),
    ))  # fmt: skip


def _table(text: str) -> list[tuple[str, str]]:
    rows = (row.partition("/") for row in text.replace("\n", ",").split(","))
    return [(en, de) for en, _, de in rows]


TIMES = {
    "past": _table("""yesterday/gestern,last week/letzte Woche,last year/letztes Jahr
the day before yesterday/vorgestern,last summer/letzten Sommer
last night/letzte Nacht
a month ago/vor einem Monat,three years ago/vor drei Jahren"""),
    "present": _table("""today/heute,every day/jeden Tag,now/jetzt
in the evening/am Abend
every morning/jeden Morgen
in winter/im Winter,at night/nachts
on Sundays/sonntags"""),
    "future": _table("""tomorrow/morgen,next week/nächste Woche,tonight/heute Abend
next year/nächstes Jahr,the day after tomorrow/übermorgen
in three days/in drei Tagen"""),
}


def time(rng: random.Random, tense: str) -> tuple[str, str]:
    """A time that suits the tense (past, present or future)."""
    draw = rng.random()
    if draw < 0.5 or tense == "present":
        return zipf(rng, TIMES[tense], 0.8)
    if draw < 0.7:
        en, _, de = rng.choice(DAYS).partition("/")
        return f"on {en}", f"am {de}"
    return date(rng, tense == "past") if draw < 0.85 else clock(rng)
