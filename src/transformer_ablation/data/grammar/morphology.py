"""Inflection: German nouns, articles, adjectives and verbs; English verbs; numbers."""

import itertools

from transformer_ablation.data.grammar.lexicon import Noun
from transformer_ablation.data.grammar.verbs import Verb

NOM, ACC, DAT, GEN = range(4)
# Agreement of a subject: ich/I, du/you, er/he, plural.
FIRST, SECOND, THIRD, PLURAL = range(4)

# One row per slot (gender, or p for every plural), one column per case.
DEFINITE = {
    "m": "der den dem des".split(),
    "f": "die die der der".split(),
    "n": "das das dem des".split(),
    "p": "die die den der".split(),
}
_RELATIVE = {
    "m": "der den dem dessen".split(),
    "f": "die die der deren".split(),
    "n": "das das dem dessen".split(),
    "p": "die die denen deren".split(),
}
_EIN = {
    "m": ("", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("", "", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
_DIES = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
_ADJECTIVE = {
    "weak": {"m": "e en en en", "f": "e e en en", "n": "e e en en", "p": "en en en en"},
    "mixed": {
        "m": "er en en en",
        "f": "e e en en",
        "n": "es es en en",
        "p": "en en en en",
    },
    "strong": {
        "m": "er en em en",
        "f": "e e er er",
        "n": "es es em en",
        "p": "e e en er",
    },
}
_ADJECTIVE_ENDINGS = {
    (kind, slot): endings.split()
    for kind, rows in _ADJECTIVE.items()
    for slot, endings in rows.items()
}
_ADJECTIVE_STEMS = {"teuer": "teur", "dunkel": "dunkl", "hoch": "hoh", "müde": "müd"}
_PRESENT = {
    "sein": "bin bist ist sind",
    "haben": "habe hast hat haben",
    "werden": "werde wirst wird werden",
    "wissen": "weiß weißt weiß wissen",
    "können": "kann kannst kann können",
    "müssen": "muss musst muss müssen",
    "wollen": "will willst will wollen",
    "sollen": "sollte solltest sollte sollten",
    "dürfen": "darf darfst darf dürfen",
}
_PRETERITE = {
    "sein": "war warst war waren",
    "haben": "hatte hattest hatte hatten",
    "werden": "wurde wurdest wurde wurden",
    "wissen": "wusste wusstest wusste wussten",
    "können": "konnte konntest konnte konnten",
    "müssen": "musste musstest musste mussten",
    "wollen": "wollte wolltest wollte wollten",
    "dürfen": "durfte durftest durfte durften",
}
_VOWELS = "aeiouyäöü"


def noun_form(noun: Noun, case: int, plural: bool) -> str:
    """The German noun in its case; dative plurals in -n, genitives in -(e)s."""
    if plural:
        word = noun.de_plural
        return word + "n" if case == DAT and word[-1] not in "ns" else word
    if noun.weak and case != NOM:
        return noun.de_plural
    if case != GEN or noun.gender == "f":
        return noun.de
    if noun.de.endswith("nis"):
        return noun.de + "ses"
    if noun.de.endswith("us"):
        return noun.de + ("ses" if noun.de == "Bus" else "es")
    syllables = sum(
        letter in _VOWELS and before not in _VOWELS
        for before, letter in itertools.pairwise(" " + noun.de.lower())
    )
    short = syllables == 1 and noun.de[-1] not in _VOWELS
    return noun.de + ("es" if short or noun.de[-1] in "sßxz" else "s")


def article(kind: str, slot: str, case: int) -> str:
    """`der` and dies/jed/welch decline alike but for der; ein, kein, mein likewise."""
    if kind == "der":
        return DEFINITE[slot][case]
    if kind in ("dies", "jed", "welch"):
        return kind + _DIES[slot][case]
    return kind + _EIN[slot][case]


def adjective(word: str, inflection: str, slot: str, case: int) -> str:
    """`inflection` is weak after der-words, mixed after ein-words, else strong."""
    stem = _ADJECTIVE_STEMS.get(word, word)
    return stem + _ADJECTIVE_ENDINGS[inflection, slot][case]


def relative_pronoun(slot: str, case: int) -> str:
    return _RELATIVE[slot][case]


def present(infinitive: str, changed: str, agreement: int) -> str:
    """The present without its separable prefix; `changed` is the stem of du and er."""
    if infinitive in _PRESENT:
        return _PRESENT[infinitive].split()[agreement]
    if agreement == PLURAL:
        return infinitive
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    if agreement == FIRST:
        return (stem[:-2] + "l" if stem.endswith("el") else stem) + "e"
    if changed:
        stem, linking = changed, ""
    else:
        hard = stem[-1] in "dt" or (
            stem[-1] in "mn" and stem[-2] not in "aeiouäöümnrlh"
        )
        linking = "e" if hard else ""
    if agreement == THIRD:
        return stem + linking + ("" if changed and stem.endswith("t") else "t")
    return stem + linking + ("t" if stem[-1] in "sßzx" else "st")


def preterite(infinitive: str, agreement: int) -> str:
    """Only for the verbs whose past is not the perfect: see `has_preterite`."""
    return _PRETERITE[infinitive].split()[agreement]


def has_preterite(infinitive: str) -> bool:
    return infinitive in _PRETERITE


def zu_infinitive(verb: Verb) -> str:
    """`aufzuräumen`, but `zu lesen`."""
    return f"{verb.prefix}zu{verb.de}" if verb.prefix else f"zu {verb.de}"


def english_third(base: str) -> str:
    if base in ("have", "go", "do"):
        return {"have": "has", "go": "goes", "do": "does"}[base]
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s")


def english_ing(base: str) -> str:
    doubled = ("run", "swim", "sit", "get", "put", "travel", "forget")
    if base in doubled:
        return base + base[-1] + "ing"
    if base == "lie":
        return "lying"
    drop = base.endswith("e") and base not in ("be", "see")
    return (base[:-1] if drop else base) + "ing"


_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_UNITS += "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
_EINER = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
_EINER += "dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
_ZEHNER = ". . zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


def number_words(number: int) -> tuple[str, str]:
    """2 to 99 as `twenty-one` and `einundzwanzig`."""
    if number < 20:
        return _UNITS[number], _EINER[number]
    tens, units = divmod(number, 10)
    if not units:
        return _TENS[tens], _ZEHNER[tens]
    return f"{_TENS[tens]}-{_UNITS[units]}", f"{_EINER[units]}und{_ZEHNER[tens]}"
