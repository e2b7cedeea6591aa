"""Noun phrases, prepositional phrases and times, in both languages at once."""

import dataclasses
import functools
import itertools
import random
from collections.abc import Sequence
from typing import TypeVar

from transformer_ablation.data.grammar import lexicon, morphology, names
from transformer_ablation.data.grammar.lexicon import Adjective, Noun
from transformer_ablation.data.grammar.morphology import ACC, DAT, GEN, NOM

CASES = (NOM, ACC, DAT, GEN)
T = TypeVar("T")
OWNERS = (
    ("my", "mein"),
    ("our", "unser"),
    ("his", "sein"),
    ("her", "ihr"),
    ("their", "ihr"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: English, and German in four cases.

    `slot` is its gender, or p; `agreement` what the verb sees; `sex` chooses he or she
    ("" where neither is safe); `kein` tells that the phrase carries the negation.
    """

    en: str
    de: tuple[str, ...]
    slot: str
    agreement: int = morphology.THIRD
    sex: str = ""
    category: str = ""
    pronoun: bool = False
    en_object: str = ""
    kein: bool = False
    clause: bool = False

    @property
    def plural(self) -> bool:
        return self.slot == "p"


def _pronoun(line: str) -> Phrase:
    en, en_object, nom, acc, dat, slot, agreement, sex = line.split()
    german = (nom, acc, dat, "")
    return Phrase(en, german, slot, int(agreement), sex.strip("-"), "", True, en_object)


PRONOUNS = [
    _pronoun(line)
    for line in """he him er ihn ihm m 2 m
she her sie sie ihr f 2 f
I me ich mich mir m 0 -
they them sie sie ihnen p 3 -
we us wir uns uns p 3 -
you you du dich dir m 1 -""".splitlines()
]
HE, SHE, ME, THEY, WE, YOU = PRONOUNS
IT = {
    "m": _pronoun("it it er ihn ihm m 2 -"),
    "f": _pronoun("it it sie sie ihr f 2 -"),
    "n": _pronoun("it it es es ihm n 2 -"),
    "p": THEY,
}


def pronoun_for(phrase: Phrase) -> Phrase | None:
    """The pronoun that takes up `phrase`; None for child and girl (English unclear)."""
    if phrase.pronoun or phrase.plural:
        return phrase if phrase.pronoun else THEY
    if phrase.category == "child":
        return None
    return {"m": HE, "f": SHE}.get(phrase.sex) or IT[phrase.slot]


@functools.cache
def _cumulative(count: int, exponent: float) -> tuple[float, ...]:
    weights = ((rank + 1.5) ** -exponent for rank in range(count))
    return tuple(itertools.accumulate(weights))


# Added to every exponent below: how much the frequent words outweigh the others.
SKEW = 1.3


def zipf(rng: random.Random, items: Sequence[T], exponent: float = 0.9) -> T:
    """One item; the probability falls with its rank."""
    weights = _cumulative(len(items), exponent + SKEW)
    return rng.choices(items, cum_weights=weights)[0]


def english_article(word: str) -> str:
    if word.startswith("hon"):
        return "a" if word == "honey" else "an"
    return "an" if word[0] in "aeiou" and not word.startswith("use") else "a"


def pick_noun(rng: random.Random, category: str) -> tuple[Noun, str]:
    """A noun of a category or group, and the category it came from."""
    if category in lexicon.GROUPS:
        category = zipf(rng, lexicon.GROUPS[category], 1.0)
    noun = zipf(rng, lexicon.NOUNS[category])
    heads = lexicon.COMPOUND_HEADS.get(category, ())
    if noun.en in heads and rng.random() < 0.35:
        en, de = zipf(rng, lexicon.COMPOUND_MODIFIERS, 0.5)
        noun = dataclasses.replace(
            noun, en=f"{en} {noun.en}", en_plural=f"{en} {noun.en_plural}",
            de=de + noun.de.lower(), de_plural=de + noun.de_plural.lower(),
        )  # fmt: skip
    return noun, category


def decline(
    noun: Noun, determiner: str, words: tuple[str, ...], plural: bool
) -> tuple[str, ...]:
    """The German phrase in four cases; `determiner` is a stem such as der or mein."""
    slot = "p" if plural else noun.gender
    inflection = "weak" if determiner in ("der", "dies", "jed", "welch") else "mixed"
    inflection = inflection if determiner else "strong"
    forms = []
    for case in CASES:
        parts = [morphology.article(determiner, slot, case)] if determiner else []
        parts += [morphology.adjective(w, inflection, slot, case) for w in words]
        parts.append(morphology.noun_form(noun, case, plural))
        forms.append(" ".join(parts))
    return tuple(forms)


STYLES = ("the", "a", "my", "this", "of", "count", "named", "many", "every")
OWNED = ("my", "of", "named")
_SEXES = {"man": "m", "woman": "f", "child": ""}


def common(
    rng: random.Random, category: str, style: str = "", negative: bool = False,
    adjectives: float = 0.42, plurals: float = 0.2,
) -> Phrase:  # fmt: skip
    """A phrase about a noun of `category`; `negative` turns ein and zero into kein."""
    noun, category = pick_noun(rng, category)
    style = style or zipf(rng, STYLES, 1.3)
    if category in _SEXES and style in OWNED:
        style = style if noun.en in lexicon.RELATIONAL else "the"
        plurals = 0.0 if noun.en in ("father", "mother") else plurals
    if noun.en == noun.en_plural:  # the sheep
        plurals = 0.0
    plural = not noun.mass and (
        style in ("many", "count") or (style != "every" and rng.random() < plurals)
    )
    words: tuple[Adjective, ...] = ()
    if rng.random() < adjectives:
        options = lexicon.ADJECTIVES[lexicon.ADJECTIVES_OF[category]]
        words = (zipf(rng, options, 0.7),)
    english, stem, quantity, kein, after = _determiner(
        rng, style, noun.mass, plural, negative
    )
    noun_words = [a.en for a in words] + [noun.en_plural if plural else noun.en]
    if english == "a":
        english = english_article(noun_words[0])
    german = decline(noun, stem, tuple(a.de for a in words), plural)
    if style == "many" and quantity:
        quantities = ("viele", "viele", "vielen", "vieler")
        german = tuple(
            f"{q} {form}" for q, form in zip(quantities, german, strict=True)
        )
    elif quantity or after:
        german = tuple(f"{quantity} {form} {after}".strip() for form in german)
    return Phrase(
        " ".join([english, *noun_words]).strip(), german,
        "p" if plural else noun.gender,
        morphology.PLURAL if plural else morphology.THIRD,
        _SEXES.get(category, ""), category, kein=kein,
    )  # fmt: skip


def _determiner(
    rng: random.Random, style: str, mass: bool, plural: bool, negative: bool
) -> tuple[str, str, str, bool, str]:
    """English, German stem, word before the noun phrase, is it kein, words after."""
    if style == "a" or (mass and style in ("count", "many", "every")):
        bare = plural or mass
        if negative:
            return ("any" if bare else "a"), "kein", "", True, ""
        return ("", "", "", False, "") if bare else ("a", "ein", "", False, "")
    if style == "my":
        english, german = rng.choice(OWNERS)
        return english, german, "", False, ""
    if style == "this":
        return ("these" if plural else "this"), "dies", "", False, ""
    if style == "every":
        return "every", "jed", "", False, ""
    if style == "many":
        return "many", "", "viele", False, ""
    if style == "count":
        number = 2 + int(rng.expovariate(0.12)) % 98
        if number > 12 and rng.random() < 0.5:
            return str(number), "", str(number), False, ""
        english, german = morphology.number_words(number)
        return english, "", german, False, ""
    if style == "named":
        owner = named(rng)
        return f"{owner.en}'s", "", owner.de[GEN], False, ""
    if style == "of":
        owner = common(rng, "person", "the", adjectives=0.1)
        mark = "'" if owner.en.endswith("s") else "'s"
        return owner.en + mark, "der", "", False, owner.de[GEN]
    return "the", "der", "", False, ""


def surname(rng: random.Random) -> str:
    return zipf(rng, names.SURNAMES if rng.random() < 0.75 else names.INVENTED, 0.7)


def named(rng: random.Random) -> Phrase:
    """`Anna`, `Tom Weber`: copied; the genitive is `Annas`, but `Max'`."""
    sex = rng.choice("mf")
    name = zipf(rng, names.MEN if sex == "m" else names.WOMEN)
    if rng.random() < 0.3:
        name = f"{name} {surname(rng)}"
    genitive = name + ("'" if name[-1] in "sxzß" else "s")
    return Phrase(name, (name, name, name, genitive), sex, sex=sex)


def titled(rng: random.Random) -> Phrase:
    """`Mr Weber` is `Herr Weber` or `Herrn Weber`; `Mrs Weber` is `Frau Weber`."""
    sex, name = rng.choice("mf"), surname(rng)
    if sex == "f":
        return Phrase(f"Mrs {name}", (f"Frau {name}",) * 4, "f", sex="f")
    oblique = f"Herrn {name}"
    return Phrase(
        f"Mr {name}", (f"Herr {name}", oblique, oblique, oblique), "m", sex="m"
    )


def pair(rng: random.Random) -> Phrase:
    one, two = named(rng), named(rng)
    german = tuple(f"{a} und {b}" for a, b in zip(one.de, two.de, strict=True))
    return Phrase(f"{one.en} and {two.en}", german, "p", morphology.PLURAL)


def person(rng: random.Random, pronouns: bool = True, negative: bool = False) -> Phrase:
    """Someone: a name, a title, a pair, a pronoun or a common noun."""
    draw = rng.random()
    if draw < 0.17:
        return named(rng)
    if draw < 0.28:
        return titled(rng)
    if draw < 0.32:
        return pair(rng)
    if draw < 0.44 and pronouns:
        return zipf(rng, PRONOUNS[:5], 0.5)
    return common(rng, "person", negative=negative)


def object_of(
    rng: random.Random, categories: Sequence[str], negative: bool = False
) -> Phrase:
    """Someone or something of one of the categories, as an object."""
    category = zipf(rng, categories, 0.6)
    if category == "person":
        return person(rng, negative=negative)
    return common(rng, category, negative=negative)


_CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum",
    ("zu", "der"): "zur", ("von", "dem"): "vom", ("bei", "dem"): "beim",
    ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip


def prepositional(preposition: str, phrase: Phrase, case: int) -> str:
    """`im Haus`; without contraction before a relative clause: `in dem Haus, das`."""
    german = phrase.de[case]
    first, _, rest = german.partition(" ")
    contracted = _CONTRACTIONS.get((preposition, first))
    if contracted and rest and not phrase.clause:
        return f"{contracted} {rest}"
    return f"{preposition} {german}"
