"""English words with two translations, told apart by a cue that may be far away."""

import dataclasses
import random

from transformer_ablation.data.grammar import adverbials, phrases, verbs
from transformer_ablation.data.grammar.clauses import (
    Clause,
    is_adjective,
    object_part,
    relative,
    time_part,
)
from transformer_ablation.data.grammar.lexicon import Noun, noun
from transformer_ablation.data.grammar.morphology import ACC, relative_pronoun
from transformer_ablation.data.grammar.phrases import Phrase, zipf


@dataclasses.dataclass(frozen=True, slots=True)
class Sense:
    """One meaning; `predicates` and `reasons` are the cues that give it away."""

    noun: Noun
    predicates: tuple[tuple[str, str], ...]
    reasons: tuple[tuple[str, str], ...]


def _cues(text: str) -> tuple[tuple[str, str], ...]:
    rows = (cue.strip().partition("=") for cue in text.split(","))
    return tuple((en, de) for en, _, de in rows)


def _senses(text: str) -> tuple[Sense, ...]:
    lines = text.strip().splitlines()
    rows = zip(lines[::4], lines[1::4], lines[2::4], lines[3::4], strict=True)
    return tuple(Sense(noun(n), _cues(p), _cues(f"{r},{s}")) for n, p, r, s in rows)


# Four lines each: the noun, its two predicates, and two reasons.
SENSES = _senses("""
bank Bank f Banken
closed=geschlossen, bankrupt=bankrott
the account was empty=das Konto leer war
money was scarce=das Geld knapp war
bank Ufer n Ufer
steep=steil, muddy=schlammig
the river was calm=der Fluss ruhig war
the ducks had disappeared=die Enten verschwunden waren
key Schlüssel m Schlüssel
rusty=rostig, made of iron=aus Eisen
the door was locked=die Tür abgeschlossen war
the lock was new=das Schloss neu war
key Taste f Tasten
sticky=klebrig, made of ivory=aus Elfenbein
the piano sounded wrong=das Klavier falsch klang
the typewriter was old=die Schreibmaschine alt war
letter Brief m Briefe
unopened=ungeöffnet, sealed=versiegelt
the postman was ill=der Briefträger krank war
the envelope was missing=der Umschlag fehlte
letter Buchstabe m Buchstaben w
silent=stumm, capitalised=großgeschrieben
the word was long=das Wort lang war
the alphabet was foreign=das Alphabet fremd war
bat Fledermaus f Fledermäuse
hungry=hungrig, nocturnal=nachtaktiv
the cave was dark=die Höhle dunkel war
the moon was shining=der Mond schien
bat Schläger m Schläger
made of wood=aus Holz, cracked=gesprungen
the match was starting=das Spiel anfing
the team was losing=die Mannschaft verlor
crane Kranich m Kraniche
shy=scheu, injured=verletzt
the birds were flying south=die Vögel nach Süden flogen
the nest was empty=das Nest leer war
crane Kran m Kräne
made of steel=aus Stahl, as tall as a tower=so hoch wie ein Turm
the building site was quiet=die Baustelle ruhig war
the load was heavy=die Last schwer war
seal Robbe f Robben
friendly=zutraulich, fat=dick
the sea was rough=das Meer unruhig war
the ice was melting=das Eis schmolz
seal Siegel n Siegel
forged=gefälscht, official=amtlich
the charter was important=die Urkunde wichtig war
the emperor had died=der Kaiser gestorben war
spring Quelle f Quellen
dried up=versiegt, full of water=voller Wasser
the water was clear=das Wasser klar war
the path was dusty=der Weg staubig war
spring Feder f Federn
rusty=rostig, made of metal=aus Metall
the mattress was old=die Matratze alt war
the clock had stopped=die Uhr stehen geblieben war
trunk Rüssel m Rüssel
grey=grau, wrinkled=runzlig
the elephant was thirsty=der Elefant durstig war
the zoo was open=der Zoo geöffnet war
trunk Kofferraum m Kofferräume
locked=abgeschlossen, full of luggage=voller Gepäck
the luggage was heavy=das Gepäck schwer war
the taxi was waiting=das Taxi wartete
mole Maulwurf m Maulwürfe
blind=blind, busy digging=am Graben
the lawn was full of holes=der Rasen voller Löcher war
the worms were gone=die Würmer weg waren
mole Muttermal n Muttermale
harmless=harmlos, malignant=bösartig
the skin was red=die Haut rot war
the cheek was swollen=die Wange geschwollen war
match Streichholz n Streichhölzer
wet=nass, burnt=verbrannt
the fire had gone out=das Feuer erloschen war
the candle was new=die Kerze neu war
match Spiel n Spiele
exciting=spannend, cancelled=abgesagt
both teams were strong=beide Mannschaften stark waren
the stadium was full=das Stadion voll war
""")
# Verbs that any of these nouns can be the object of.
NOTICING = tuple(
    verbs.verb(line)
    for line in """see saw seen; sehen sieh; gesehen h
describe; beschreiben; beschrieben h
photograph; fotografieren; fotografiert h
dream =of; träumen von dat; geträumt h
talk =about; sprechen sprich über acc; gesprochen h
think thought =of; denken an acc; gedacht h
mention; erwähnen; erwähnt h
examine; untersuchen; untersucht h""".splitlines()
)
LINKS = (("because", "weil"), ("although", "obwohl"), ("while", "während"))


def _phrase(rng: random.Random, sense: Sense, style: str) -> Phrase:
    stem = {"the": "der", "this": "dies", "a": "ein"}[style]
    german = phrases.decline(sense.noun, stem, (), plural=False)
    return Phrase(f"{style} {sense.noun.en}", german, sense.noun.gender)


def far_predicate(rng: random.Random) -> tuple[str, str]:
    """`The bank that Anna described yesterday was muddy.`"""
    sense = zipf(rng, SENSES, 0.2)
    head = _phrase(rng, sense, rng.choice(("the", "the", "this")))
    verb = rng.choice([v for v in NOTICING if not v.preposition])
    hole = object_part(head, verb)
    inner = Clause(phrases.person(rng), verb, (hole,), "past")
    if rng.random() < 0.7:
        inner = inner.with_parts(time_part(adverbials.time(rng, "past")))
    pronoun = relative_pronoun(head.slot, ACC)
    english = "that " + inner.english_without(hole)
    german = pronoun + " " + inner.german_last(skip=hole)
    tense = rng.choice(("past", "past", "present"))
    whole = is_adjective(
        relative(head, english, german), rng.choice(sense.predicates), tense
    )
    return whole.english() + " .", whole.german() + " ."


def far_reason(rng: random.Random) -> tuple[str, str]:
    """`Anna dreamed of a bat because the match was starting.`"""
    sense = zipf(rng, SENSES, 0.2)
    target = _phrase(rng, sense, rng.choice(("the", "a", "this")))
    verb = rng.choice(NOTICING)
    clause = Clause(phrases.person(rng), verb, (object_part(target, verb),), "past")
    time = time_part(adverbials.time(rng, "past"))
    first = time if rng.random() < 0.3 else None
    if first or rng.random() < 0.4:
        clause = clause.with_parts(time)
    en_link, de_link = rng.choice(LINKS)
    en_reason, de_reason = rng.choice(sense.reasons)
    if first is None and rng.random() < 0.35:
        english = f"{en_link} {en_reason} , {clause.english()} ."
        return english, clause.german(f"{de_link} {de_reason} ,") + " ."
    english = f"{clause.english(first)} {en_link} {en_reason} ."
    return english, f"{clause.german(first)} , {de_link} {de_reason} ."
