"""Verbs: English and German forms, the frame and what the object may be.

A line is `english; German; participle aux; objects`: English is `base [past
[participle]] [+particle or =preposition]` (only `+` goes behind a pronoun object),
German is `[prefix|]infinitive [changed stem of du/er] [preposition case]`.
One English verb with two lines is ambiguous, and its object or subject decides.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Verb:
    """A verb pair; `prefix` is the separable one, `aux` h (haben) or s (sein)."""

    en: str
    en_past: str
    en_participle: str
    particle: str
    movable: bool
    prefix: str
    de: str
    changed: str
    preposition: str
    case: int
    participle: str
    aux: str
    objects: tuple[str, ...] = ()


def english_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def verb(line: str, case: int = 1) -> Verb:
    """Parses one line; `case` is the object's (1 accusative, 2 dative)."""
    english, german, perfect, *objects = (part.strip() for part in line.split(";"))
    words = english.split()
    particle = words.pop() if words[-1][0] in "+=" else ""
    past = words[1] if len(words) > 1 else english_past(words[0])
    german_words = german.split()
    preposition = ""
    if german_words[-1] in ("acc", "dat"):
        case = {"acc": 1, "dat": 2}[german_words.pop()]
        preposition = german_words.pop()
    prefix, _, infinitive = german_words[0].rpartition("|")
    participle, aux = perfect.split()
    return Verb(
        words[0], past, words[2] if len(words) > 2 else past,
        particle[1:].replace("_", " "), particle.startswith("+"),
        prefix, infinitive, german_words[1] if len(german_words) > 1 else "",
        preposition, case, participle, aux, tuple(" ".join(objects).split()),
    )  # fmt: skip


def _verbs(text: str, case: int = 1) -> tuple[Verb, ...]:
    return tuple(verb(line, case) for line in text.strip().splitlines())


TRANSITIVE = _verbs("""
buy bought; kaufen; gekauft h; clothing device vehicle thing furniture print dish food
see saw seen; sehen sieh; gesehen h; person animal vehicle building
eat ate eaten; essen iss; gegessen h; dish food
read read; lesen lies; gelesen h; print text
find found; finden; gefunden h; thing pair clothing
look =for; suchen; gesucht h; thing pair animal person
drink drank drunk; trinken; getrunken h; drink
sell sold; verkaufen; verkauft h; vehicle furniture device clothing
visit; besuchen; besucht h; person
open; öffnen; geöffnet h; opening
know knew known; kennen; gekannt h; person building song tale
lose lost; verlieren; verloren h; thing pair
write wrote written; schreiben; geschrieben h; text
repair; reparieren; repariert h; vehicle device
put put +on; an|ziehen; angezogen h; clothing pair
tidy +up; auf|räumen; aufgeräumt h; room
switch +on; ein|schalten; eingeschaltet h; device
switch +off; aus|schalten; ausgeschaltet h; device
invite; ein|laden läd; eingeladen h; person
pick +up; ab|holen; abgeholt h; person
meet met; treffen triff; getroffen h; person
take took taken +off; aus|ziehen; ausgezogen h; clothing pair
throw threw thrown +away; weg|werfen wirf; weggeworfen h; thing pair
bring brought +back; zurück|bringen; zurückgebracht h; thing print
try +on; an|probieren; anprobiert h; clothing
wash; waschen wäsch; gewaschen h; clothing vehicle
love; lieben; geliebt h; person animal
understand understood; verstehen; verstanden h; idea person
paint; streichen; gestrichen h; furniture opening room
draw drew drawn; zeichnen; gezeichnet h; animal person building
miss; vermissen; vermisst h; person animal
miss; verpassen; verpasst h; ride
save; retten; gerettet h; person animal
save; speichern; gespeichert h; file
change; ändern; geändert h; idea
close; zu|machen; zugemacht h; opening
order; bestellen; bestellt h; dish food drink
feed fed; füttern; gefüttert h; animal
hide hid hidden; verstecken; versteckt h; thing
sing sang sung; singen; gesungen h; song
leave left; verlassen verläss; verlassen h; building outdoors person
forget forgot forgotten; vergessen vergiss; vergessen h; thing print
describe; beschreiben; beschrieben h; building person animal landmark
phone; an|rufen; angerufen h; person
wear wore worn; tragen träg; getragen h; clothing
carry carried; tragen träg; getragen h; furniture thing
borrow; aus|leihen; ausgeliehen h; print
admire; bewundern; bewundert h; person building
greet; begrüßen; begrüßt h; person
catch caught; fangen fäng; gefangen h; fish
catch caught; erreichen; erreicht h; ride
discover; entdecken; entdeckt h; landmark
run ran run; leiten; geleitet h; building
fire; entlassen entläss; entlassen h; person
photograph; fotografieren; fotografiert h; animal building landmark
""")
DATIVE = _verbs(
    """
help; helfen hilf; geholfen h; person
thank; danken; gedankt h; person
follow; folgen; gefolgt s; person animal
answer; antworten; geantwortet h; person
trust; vertrauen; vertraut h; person
listen =to; zu|hören; zugehört h; person
believe; glauben; geglaubt h; person
congratulate; gratulieren; gratuliert h; person
forgive forgave forgiven; verzeihen; verziehen h; person
contradict; widersprechen widersprich; widersprochen h; person
""",
    case=2,
)
PREPOSITIONAL = _verbs("""
wait =for; warten auf acc; gewartet h; person ride
talk =about; sprechen sprich über acc; gesprochen h; idea person print text
think thought =of; denken an acc; gedacht h; person tale
speak spoke spoken =to; sprechen sprich mit dat; gesprochen h; person
dream =of; träumen von dat; geträumt h; animal building vehicle
laugh =at; lachen über acc; gelacht h; tale person
look =after; auf|passen auf acc; aufgepasst h; child animal
argue =with; streiten mit dat; gestritten h; person
warn =about; warnen vor dat; gewarnt h; animal
""")
DITRANSITIVE = _verbs("""
give gave given; geben gib; gegeben h; thing print clothing
show showed shown; zeigen; gezeigt h; thing building animal text
send sent; schicken; geschickt h; thing print text
bring brought; bringen; gebracht h; thing drink dish
lend lent; leihen; geliehen h; vehicle print thing
sell sold; verkaufen; verkauft h; vehicle furniture device
tell told; erzählen; erzählt h; tale
offer; an|bieten; angeboten h; drink dish
""")
EXPLAINING = _verbs("""
explain; erklären; erklärt h; idea
recommend; empfehlen empfiehl; empfohlen h; print
return; zurück|geben gib; zurückgegeben h; thing print
read read =aloud; vor|lesen lies; vorgelesen h; text
""")
INTRANSITIVE = _verbs("""
sleep slept; schlafen schläf; geschlafen h
work; arbeiten; gearbeitet h
laugh; lachen; gelacht h
arrive; an|kommen; angekommen s
get got =up; auf|stehen; aufgestanden s
sing sang sung; singen; gesungen h
dance; tanzen; getanzt h
cry; weinen; geweint h
fall fell fallen =asleep; ein|schlafen schläf; eingeschlafen s
wake woke woken =up; auf|wachen; aufgewacht s
come came come =back; zurück|kommen; zurückgekommen s
smile; lächeln; gelächelt h
swim swam swum; schwimmen; geschwommen s
""")
ANIMAL_INTRANSITIVE = _verbs("""
sleep slept; schlafen schläf; geschlafen h
run ran run =away; weg|laufen läuf; weggelaufen s
wake woke woken =up; auf|wachen; aufgewacht s
""")
ANIMAL_TRANSITIVE = _verbs("""
eat ate eaten; fressen friss; gefressen h; dish food
chase; jagen; gejagt h; animal
follow; verfolgen; verfolgt h; person
find found; finden; gefunden h; dish pair
""")
MOTION = {
    "foot": verb("go went gone; gehen; gegangen s"),
    "drive": verb("go went gone; fahren fähr; gefahren s"),
    "fly": verb("go went gone; fliegen; geflogen s"),
    "run": verb("run ran run; laufen läuf; gelaufen s"),
    "climb": verb("climb; klettern; geklettert s"),
    "move": verb("move; ziehen; gezogen s"),
    "travel": verb("travel travelled; reisen; gereist s"),
}
PLACING = {
    "upright": verb("put put; stellen; gestellt h"),
    "flat": verb("put put; legen; gelegt h"),
}
STAYING = _verbs("""
work; arbeiten; gearbeitet h
live; wohnen; gewohnt h
wait; warten; gewartet h
play; spielen; gespielt h
stay; bleiben; geblieben s
""")
POSITION = _verbs("""
sit sat; sitzen; gesessen h
stand stood; stehen; gestanden h
lie lay lain; liegen; gelegen h
sleep slept; schlafen schläf; geschlafen h
""")
BE = verb("be was been; sein; gewesen s")
HAVE = verb("have had; haben; gehabt h")
KNOW = verb("know knew known; wissen; gewusst h")
PLAY = verb("play; spielen; gespielt h")
SPEND_TIME = verb("spend spent; verbringen; verbracht h")
SPEND_MONEY = verb("spend spent; aus|geben gib; ausgegeben h")
COST = verb("cost cost; kosten; gekostet h")
BELONG = verb("belong =to; gehören; gehört h", case=2)
RAIN = verb("rain; regnen; geregnet h")
SNOW = verb("snow; schneien; geschneit h")
REPORTING = _verbs("""
say said; sagen; gesagt h
hope; hoffen; gehofft h
think thought; glauben; geglaubt h
hear heard; hören; gehört h
write wrote written; schreiben; geschrieben h
claim; behaupten; behauptet h
""")
TRY = verb("try; versuchen; versucht h")
FORGET = verb("forget forgot forgotten; vergessen vergiss; vergessen h")
PROMISE = verb("promise; versprechen versprich; versprochen h")
