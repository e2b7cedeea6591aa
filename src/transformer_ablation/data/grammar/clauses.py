"""Clauses: one meaning, spelled out as an English and a German clause of any type."""

import dataclasses

from transformer_ablation.data.grammar import morphology
from transformer_ablation.data.grammar.morphology import ACC, DAT, NOM, THIRD
from transformer_ablation.data.grammar.phrases import Phrase, prepositional
from transformer_ablation.data.grammar.verbs import BE, HAVE, Verb, verb

# Order of the German middle field, and of what follows the English verb.
PRONOUN, PRONOUN_DATIVE, TIME, OFTEN, DATIVE, ACCUSATIVE, NOT, REST, GOVERNED = range(9)
EN_INDIRECT, EN_OBJECT, EN_REST, EN_PLACE, EN_TIME = range(5)
MODALS = {
    "can": "können", "have to": "müssen", "want to": "wollen", "should": "sollen",
    "be allowed to": "dürfen",
}  # fmt: skip
_WANT = verb("want; wollen; gewollt h")
_BE_FORMS = {"present": "am are is are".split(), "past": "was were was were".split()}


Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A complement or adverbial: its words and its place in either language."""

    en: str
    de: str
    en_rank: int
    de_rank: int


def time_part(words: tuple[str, str]) -> Part:
    return Part(*words, EN_TIME, TIME)


def place_part(words: tuple[str, str]) -> Part:
    return Part(*words, EN_PLACE, REST)


def rest_part(en: str, de: str) -> Part:
    """A predicative, a manner or a direction: last in the German middle field."""
    return Part(en, de, EN_REST, REST)


def object_part(phrase: Phrase, verb: Verb) -> Part:
    """The object of `verb`, in the case or with the preposition it governs."""
    en = phrase.en_object or phrase.en
    if verb.preposition:
        german = prepositional(verb.preposition, phrase, verb.case)
        return Part(en, german, EN_OBJECT, GOVERNED)
    ranks = (PRONOUN, PRONOUN_DATIVE) if phrase.pronoun else (ACCUSATIVE, DATIVE)
    rank = ranks[0 if verb.case == ACC else 1]
    return Part(en, phrase.de[verb.case], EN_OBJECT, rank)


def dative_part(phrase: Phrase, en_rank: int = EN_INDIRECT) -> Part:
    """The receiver; behind the object, English adds `to`."""
    en = phrase.en_object or phrase.en
    rank = PRONOUN_DATIVE if phrase.pronoun else DATIVE
    return Part(
        en if en_rank == EN_INDIRECT else f"to {en}", phrase.de[DAT], en_rank, rank
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Clause:
    """Subject, verb and parts; `tense` is past, present, progressive or future.

    `negated` is English `not`; German says nicht unless `kein` already says it.
    """

    subject: Phrase
    verb: Verb
    parts: tuple[Part, ...] = ()
    tense: str = "present"
    modal: str = ""
    often: tuple[str, str] = ("", "")
    gern: bool = False
    negated: bool = False
    kein: bool = False
    passive: bool = False
    pronoun_object: bool = False

    def with_parts(self, *parts: Part) -> "Clause":
        return dataclasses.replace(self, parts=self.parts + parts)

    @property
    def english_is_ambiguous(self) -> bool:
        """`they put` is present or past; such a present is never generated."""
        plain = self.tense == "present" and not (
            self.modal or self.gern or self.negated
        )
        same = self.verb.en == self.verb.en_past
        return plain and same and self.subject.agreement != THIRD

    def settled(self) -> "Clause":
        """The clause, in the past where its English present would look like one."""
        tense = "past" if self.english_is_ambiguous else self.tense
        return dataclasses.replace(self, tense=tense)

    # English

    def _en_group(self, support: bool) -> tuple[str, str]:
        """The auxiliary (may be empty) and the rest; `support` asks for do."""
        agreement = self.subject.agreement
        base = self.verb.en
        past = self.tense == "past"
        forms = _BE_FORMS["past" if past else "present"]
        if self.passive:
            return forms[agreement], self.verb.en_participle
        if self.tense == "progressive":
            return forms[agreement], morphology.english_ing(base)
        if self.tense == "future":
            return "will", base
        if self.modal == "be allowed to":
            return forms[agreement], f"allowed to {base}"
        if self.modal in ("can", "should"):
            return "could" if past and self.modal == "can" else self.modal, base
        if base == "be" and not self.modal:
            return forms[agreement], ""
        head, tail = self.verb, ""
        if self.modal:
            head, tail = (HAVE if self.modal == "have to" else _WANT), f" to {base}"
        elif self.gern:
            head, tail = _LIKE, f" to {base}"
        if support:
            third = "does" if agreement == THIRD else "do"
            return "did" if past else third, head.en + tail
        third = morphology.english_third(head.en) if agreement == THIRD else head.en
        return "", (head.en_past if past else third) + tail

    def _en_tail(self, verb_form: str, skip: Part | None = None) -> list[str]:
        """The verb and what follows; a particle stands behind a pronoun object."""
        parts = sorted(self.parts, key=lambda part: part.en_rank)
        words = [part.en for part in parts if part is not skip]
        after = self.verb.movable and self.pronoun_object and bool(words)
        words.insert(1 if after else 0, self.verb.particle)
        return [self.often[0], verb_form, *words]

    def english(self, first: Part | None = None) -> str:
        """A statement or embedded clause; `first` is fronted."""
        front = [first.en] if first else []
        return _join([*front, self.subject.en, self.english_without(first, False)])

    def english_without(self, hole: Part | None, subject: bool = True) -> str:
        """The clause without the part `hole` and, if asked, without its subject."""
        aux, rest = self._en_group(support=self.negated)
        negation = "not" if self.negated else ""
        aux, negation = ("cannot", "") if negation and aux == "can" else (aux, negation)
        who = [self.subject.en] if subject else []
        return _join([*who, aux, negation, *self._en_tail(rest, hole)])

    def english_question(self, asked: str = "", skip: Part | None = None) -> str:
        """Inverted, with the question word `asked` in front, if any."""
        aux, rest = self._en_group(support=True)
        negation = "not" if self.negated else ""
        tail = self._en_tail(rest, skip)
        return _join([asked, aux, self.subject.en, negation, *tail])

    # German

    def _de_group(self) -> tuple[str, list[str]]:
        """The finite verb and the right bracket of a main clause."""
        verb, agreement = self.verb, self.subject.agreement
        past = self.tense == "past"
        if self.passive:
            infinitive, right = "werden", [verb.participle]
        elif self.modal:
            infinitive, right = MODALS[self.modal], [verb.prefix + verb.de]
        elif self.tense == "future":
            infinitive, right = "werden", [verb.prefix + verb.de]
        elif past and not morphology.has_preterite(verb.de):
            auxiliary = "sein" if verb.aux == "s" else "haben"
            return morphology.present(auxiliary, "", agreement), [verb.participle]
        else:
            infinitive, right = verb.de, [verb.prefix]
        if past:
            return morphology.preterite(infinitive, agreement), right
        changed = verb.changed if infinitive == verb.de else ""
        return morphology.present(infinitive, changed, agreement), right

    def _middle(self, skip: Part | None = None) -> list[str]:
        parts = [part for part in self.parts if part is not skip]
        if self.tense == "progressive":
            parts.append(Part("", "gerade", 0, OFTEN))
        if self.gern:
            parts.append(Part("", "gern", 0, OFTEN))
        if self.often[1]:
            parts.append(Part("", self.often[1], 0, OFTEN))
        if self.negated and not self.kein:
            parts.append(Part("", "nicht", 0, NOT))
        return [part.de for part in sorted(parts, key=lambda part: part.de_rank)]

    def german(self, first: Part | str | None = None) -> str:
        """Verb second, behind the subject or `first` (a part, or words such as wo)."""
        finite, right = self._de_group()
        subject = self.subject.de[NOM]
        if first is None:
            return _join([subject, finite, *_extraposed(self._middle(), right)])
        words, skip = (first, None) if isinstance(first, str) else (first.de, first)
        middle = self._middle(skip)
        return _join([words, finite, subject, *_extraposed(middle, right)])

    def german_last(self, subject: str | None = None, skip: Part | None = None) -> str:
        """Verb last; a present rejoins its prefix: `das Zimmer aufräumt`."""
        finite, right = self._de_group()
        who = self.subject.de[NOM] if subject is None else subject
        if right == [self.verb.prefix]:
            return _join([who, *self._middle(skip), self.verb.prefix + finite])
        return _join([who, *self._middle(skip), *right, finite])

    def german_infinitive(self) -> str:
        """`das Zimmer aufzuräumen`, without a subject."""
        return _join([*self._middle(), morphology.zu_infinitive(self.verb)])

    def english_infinitive(self) -> str:
        return _join(["to", *self._en_tail(self.verb.en)])


_LIKE = verb("like; mögen; gemocht h")


def _join(words: list[str]) -> str:
    return " ".join(word for word in words if word)


def _extraposed(middle: list[str], right: list[str]) -> list[str]:
    """A relative clause at the end of the middle field goes behind the bracket."""
    if not (middle and middle[-1].endswith(" ,")):
        return [*middle, *right]
    head, _, clause = middle[-1].partition(" , ")
    return [*middle[:-1], head, *right, ",", clause]


def relative(head: Phrase, english: str, german: str) -> Phrase:
    """`head` with a relative clause, whose commas `sentences.tidy` sorts out."""
    forms = tuple(f"{form} , {german} ," for form in head.de)
    return dataclasses.replace(head, en=f"{head.en} {english}", de=forms, clause=True)


def by_agent(phrase: Phrase) -> Part:
    en = phrase.en_object or phrase.en
    return Part(f"by {en}", prepositional("von", phrase, DAT), EN_REST, REST)


def is_adjective(subject: Phrase, adjective: Pair, tense: str) -> Clause:
    return Clause(subject, BE, (rest_part(*adjective),), tense)


def opening(clause: Clause, first: Part | None = None) -> Pair:
    return clause.english(first), clause.german(first)
