"""The grammar's German against paradigms written by hand, and the corpus's promises."""

import itertools
import random
import re
import subprocess
import sys

import pytest

from transformer_ablation.data.grammar import (
    builder,
    homonyms,
    lexicon,
    morphology,
    names,
    phrases,
    sentences,
    verbs,
)
from transformer_ablation.data.grammar.clauses import (
    Clause,
    by_agent,
    dative_part,
    object_part,
    relative,
    time_part,
)
from transformer_ablation.data.grammar.morphology import ACC, DAT, GEN, NOM

NOUNS = {n.en: n for group in lexicon.NOUNS.values() for n in group}
VERBS = {v.de: v for v in verbs.TRANSITIVE + verbs.DATIVE + verbs.PREPOSITIONAL}
HE, SHE, ME, THEY, WE, YOU = phrases.PRONOUNS
SAMPLE_SIZE = 2000


@pytest.fixture(scope="module")
def sample():
    return list(sentences.generate(seed=5, count=SAMPLE_SIZE))


def phrase(en, determiner="der", adjectives=(), plural=False):
    noun = NOUNS[en]
    german = phrases.decline(noun, determiner, adjectives, plural)
    agreement = morphology.PLURAL if plural else morphology.THIRD
    return phrases.Phrase(
        f"the {en}", german, "p" if plural else noun.gender, agreement
    )


@pytest.mark.parametrize(
    ("noun", "determiner", "adjective", "plural", "expected"),
    [
        ("dog", "der", "klein", False,
         "der kleine Hund,den kleinen Hund,dem kleinen Hund,des kleinen Hundes"),
        ("dog", "der", "klein", True,
         "die kleinen Hunde,die kleinen Hunde,den kleinen Hunden,der kleinen Hunde"),
        ("dog", "ein", "klein", False,
         "ein kleiner Hund,einen kleinen Hund,einem kleinen Hund,eines kleinen Hundes"),
        ("woman", "kein", "alt", False,
         "keine alte Frau,keine alte Frau,keiner alten Frau,keiner alten Frau"),
        ("child", "unser", "müde", False,
         "unser müdes Kind,unser müdes Kind,unserem müden Kind,unseres müden Kindes"),
        ("book", "dies", "teuer", True,
         "diese teuren Bücher,diese teuren Bücher,diesen teuren Büchern,"
         "dieser teuren Bücher"),
        ("water", "", "kalt", False,
         "kaltes Wasser,kaltes Wasser,kaltem Wasser,kalten Wassers"),
        ("student", "der", "jung", False,
         "der junge Student,den jungen Studenten,dem jungen Studenten,"
         "des jungen Studenten"),
        ("secret", "jed", "dunkel", False,
         "jedes dunkle Geheimnis,jedes dunkle Geheimnis,jedem dunklen Geheimnis,"
         "jedes dunklen Geheimnisses"),
        ("radio", "mein", "neu", True,
         "meine neuen Radios,meine neuen Radios,meinen neuen Radios,"
         "meiner neuen Radios"),
    ],
)  # fmt: skip
def test_phrase_declines_like_the_textbook(
    noun, determiner, adjective, plural, expected
):
    german = phrases.decline(NOUNS[noun], determiner, (adjective,), plural)
    assert german == tuple(expected.split(","))


@pytest.mark.parametrize(
    ("infinitive", "expected"),
    [
        ("lesen", "lese liest liest lesen"),
        ("fahren", "fahre fährst fährt fahren"),
        ("geben", "gebe gibst gibt geben"),
        ("warten", "warte wartest wartet warten"),
        ("öffnen", "öffne öffnest öffnet öffnen"),
        ("laden", "lade lädst lädt laden"),
        ("lächeln", "lächle lächelst lächelt lächeln"),
        ("tanzen", "tanze tanzt tanzt tanzen"),
        ("lernen", "lerne lernst lernt lernen"),
        ("wissen", "weiß weißt weiß wissen"),
    ],
)
def test_present_has_stem_change_and_linking_e(infinitive, expected):
    changed = {"lesen": "lies", "fahren": "fähr", "geben": "gib", "laden": "läd"}
    stem = changed.get(infinitive, "")
    forms = [morphology.present(infinitive, stem, person) for person in range(4)]
    assert " ".join(forms) == expected


def test_separable_prefix_goes_last_and_comes_back_in_subordinate_clauses():
    room = object_part(phrase("room"), VERBS["räumen"])
    clause = Clause(SHE, VERBS["räumen"], (room,))
    past = Clause(SHE, VERBS["räumen"], (room,), "past")
    modal = Clause(SHE, VERBS["räumen"], (room,), modal="have to")
    assert clause.german() == "sie räumt das Zimmer auf"
    assert clause.german_last() == "sie das Zimmer aufräumt"
    assert past.german() == "sie hat das Zimmer aufgeräumt"
    assert past.german_last() == "sie das Zimmer aufgeräumt hat"
    assert modal.german() == "sie muss das Zimmer aufräumen"
    assert modal.german_last() == "sie das Zimmer aufräumen muss"
    assert clause.german_infinitive() == "das Zimmer aufzuräumen"


def test_english_particle_follows_a_pronoun_but_precedes_a_noun():
    verb = VERBS["rufen"]
    noun = Clause(SHE, verb, (object_part(phrase("man"), VERBS["holen"]),))
    assert noun.english() == "she phones the man"
    pick_up = VERBS["holen"]
    him = Clause(WE, pick_up, (object_part(HE, pick_up),), "past", pronoun_object=True)
    man = Clause(WE, pick_up, (object_part(phrase("man"), pick_up),), "past")
    assert him.english() == "we picked him up"
    assert man.english() == "we picked up the man"


def test_verb_is_second_behind_a_fronted_time():
    time = time_part(("yesterday", "gestern"))
    parts = (object_part(phrase("book"), VERBS["kaufen"]), time)
    clause = Clause(phrase("man"), VERBS["kaufen"], parts, "past")
    assert clause.german(time) == "gestern hat der Mann das Buch gekauft"
    assert clause.german() == "der Mann hat gestern das Buch gekauft"
    assert clause.english() == "the man bought the book yesterday"


def test_questions_invert_and_english_needs_do():
    parts = (object_part(phrase("apple", "ein"), VERBS["essen"]),)
    clause = Clause(YOU, VERBS["essen"], parts, "past")
    assert clause.english_question() == "did you eat the apple"
    assert clause.german("") == "hast du einen Apfel gegessen"
    assert clause.german("warum") == "warum hast du einen Apfel gegessen"


def test_nicht_stands_behind_the_object_and_before_a_prepositional_one():
    thank, wait = VERBS["danken"], VERBS["warten"]
    thanks = Clause(HE, thank, (object_part(phrase("woman"), thank),), negated=True)
    waits = Clause(HE, wait, (object_part(phrase("bus"), wait),), negated=True)
    assert thanks.german() == "er dankt der Frau nicht"
    assert waits.german() == "er wartet nicht auf den Bus"
    assert waits.english() == "he does not wait for the bus"


def test_negated_indefinite_is_kein():
    verb = VERBS["kaufen"]
    rng = random.Random(0)
    bought = phrases.common(rng, "vehicle", "a", negative=True, adjectives=0, plurals=0)
    clause = Clause(
        HE, verb, (object_part(bought, verb),), negated=True, kein=bought.kein
    )
    assert re.fullmatch(r"er kauft keine?n? \w+", clause.german())


def test_dative_precedes_accusative_but_pronouns_precede_both():
    give = next(v for v in verbs.DITRANSITIVE if v.de == "geben")
    to_man = dative_part(phrase("man"))
    book = object_part(phrase("book"), give)
    it = object_part(phrases.IT["n"], give)
    assert Clause(SHE, give, (book, to_man)).german() == "sie gibt dem Mann das Buch"
    assert Clause(SHE, give, (it, to_man)).german() == "sie gibt es dem Mann"


def test_passive_future_and_preterite_of_the_auxiliaries():
    sold = Clause(
        phrase("car"), VERBS["verkaufen"], (by_agent(SHE),), "past", passive=True
    )
    assert sold.german() == "das Auto wurde von ihr verkauft"
    assert sold.english() == "the car was sold by her"
    future = Clause(ME, VERBS["rufen"], (object_part(HE, VERBS["rufen"]),), "future")
    assert future.german() == "ich werde ihn anrufen"
    assert Clause(THEY, verbs.HAVE, (), "past").german() == "sie hatten"


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        ("m", "der den dem dessen"),
        ("f", "die die der deren"),
        ("p", "die die denen deren"),
    ],
)
def test_relative_pronoun_takes_gender_of_head_and_case_of_role(slot, expected):
    forms = [morphology.relative_pronoun(slot, case) for case in (NOM, ACC, DAT, GEN)]
    assert forms == expected.split()


def test_relative_clause_moves_behind_the_right_bracket():
    seen = relative(phrase("dog"), "that barks", "der bellt")
    clause = Clause(HE, VERBS["sehen"], (object_part(seen, VERBS["sehen"]),), "past")
    german = sentences.tidy(clause.german() + " .")
    assert german == "Er hat den Hund gesehen, der bellt."


@pytest.mark.parametrize(
    ("preposition", "noun", "case", "expected"),
    [
        ("in", "house", DAT, "im Haus"), ("in", "house", ACC, "ins Haus"),
        ("zu", "school", DAT, "zur Schule"), ("zu", "station", DAT, "zum Bahnhof"),
        ("auf", "table", ACC, "auf den Tisch"), ("in", "town", DAT, "in der Stadt"),
    ],
)  # fmt: skip
def test_preposition_contracts_with_the_article(preposition, noun, case, expected):
    assert phrases.prepositional(preposition, phrase(noun), case) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (7, "sieben"), (16, "sechzehn"), (17, "siebzehn"), (21, "einundzwanzig"),
        (30, "dreißig"), (76, "sechsundsiebzig"), (99, "neunundneunzig"),
    ],
)  # fmt: skip
def test_german_numbers_put_units_first(number, expected):
    assert morphology.number_words(number)[1] == expected


@pytest.mark.parametrize("noun", NOUNS.values(), ids=lambda n: n.en)
def test_every_noun_has_gender_capital_and_plural(noun):
    assert noun.gender in "mfn"
    assert noun.de[0].isupper()
    assert noun.mass or noun.de_plural[0].isupper()
    assert not noun.weak or (noun.gender == "m" and noun.de_plural.endswith("n"))


def test_at_least_eight_english_words_need_distant_context():
    senses = {}
    for sense in homonyms.SENSES:
        senses.setdefault(sense.noun.en, set()).add(sense.noun.de)
    assert sum(len(german) == 2 for german in senses.values()) >= 8
    english = [v.en for v in verbs.TRANSITIVE if not v.particle]
    assert english.count("miss") == english.count("save") == 2


def test_generate_is_a_pure_function_of_seed_and_count():
    first = list(sentences.generate(seed=9, count=50))
    assert first == list(sentences.generate(seed=9, count=50))
    assert first[:20] == list(sentences.generate(seed=9, count=20))
    assert first != list(sentences.generate(seed=10, count=50))


def test_sample_keeps_lengths_punctuation_and_spacing(sample):
    for english, german in sample:
        for line in (english, german):
            assert 5 <= len(line.split()) <= 30, line
            assert "  " not in line and " ," not in line and ",," not in line
            assert line[0].isupper() or line[0].isdigit()
        assert english[-1] == german[-1] in ".?"
    mean = sum(len(english.split()) for english, _ in sample) / len(sample)
    assert 9 < mean < 12  # docs/grammar.md says 10


def test_german_sets_a_comma_before_every_subordinator(sample):
    links = r" (weil|obwohl|dass|ob|wenn|während|um (?=.* zu\b))\b"
    for _, german in sample:
        for found in re.finditer(links, german):
            assert german[found.start() - 1] == ",", german


def test_names_are_copied_unchanged(sample):
    invented = set(names.INVENTED)
    copied = 0
    for english, german in sample:
        for name in invented & set(re.findall(r"\w+", english)):
            assert re.search(rf"\b{name}s?\b", german), (english, german)
            copied += 1
    assert copied > SAMPLE_SIZE / 50


def test_splits_are_disjoint_on_either_side_and_as_long_as_asked():
    sizes = {"train": 900, "validation": 70, "test": 50}
    splits = builder.corpus(sizes)
    assert {name: len(pairs) for name, pairs in splits.items()} == sizes
    for side in (0, 1):
        lines = [pair[side] for pairs in splits.values() for pair in pairs]
        assert len(lines) == len(set(lines))


def test_builder_prepares_and_reads_back(tmp_path, monkeypatch):
    sizes = {"train": 30, "validation": 7, "test": 5}
    monkeypatch.setattr(builder.Grammar, "SIZES", sizes)
    made = builder.Grammar(data_dir=str(tmp_path), file_format="array_record")
    made.download_and_prepare()
    expected = builder.corpus(sizes)
    for split, size in sizes.items():
        source = made.as_data_source(split=split)
        rows = [source[index] for index in range(len(source))]
        read = {(row["en"].decode(), row["de"].decode()) for row in rows}
        assert len(rows) == size
        assert read == set(expected[split])


def test_grammar_imports_neither_jax_nor_tensorflow():
    code = (
        "import sys; import transformer_ablation.data.grammar.sentences;"
        "assert not {'jax', 'tensorflow'} & set(sys.modules)"
    )
    paths = itertools.chain(sys.path)
    environment = {"PYTHONPATH": ":".join(path for path in paths if path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
