"""A user's own text: two forms of files, held-out pairs, and every fault of them."""

import gzip
import hashlib
import os
import tracemalloc

import hypothesis
import pytest
from hypothesis import strategies

from transformer_ablation import config
from transformer_ablation.data import parallel_text, scan
from transformer_ablation.data.corpus import (
    CorpusError,
    load_corpus,
    manifest_hash,
    read_manifest,
)
from transformer_ablation.data.parallel_files import files, holdout

# (English, German); no tabs, so that it fits both forms.
PAIRS = {
    "train": [
        ("A dog .", "Ein Hund ."),
        ("Two  cats\r", " Zwei Katzen "),
        ("It\u2028is\x85 one line", "Das\u2029ist\x0c eine\x1dZeile\0"),
        ("", "Leer"),
        ("\ufeffEnd", "Ende"),
    ],
    "validation": [("One", "Eins"), ("Two", "Zwei")],
    "test": [("Last", "Letzter")],
}


def save(path, lines, packed):
    content = "".join(f"{line}\n" for line in lines).encode()
    if packed:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def write_sides(folder, splits=PAIRS, languages=("en", "de"), packed=False):
    """A file for each language of each split."""
    folder.mkdir(exist_ok=True)
    for name, pairs in splits.items():
        for language, lines in zip(languages, zip(*pairs, strict=True), strict=True):
            save(folder / f"{name}.{language}", lines, packed)
    return folder


def write_tables(folder, splits=PAIRS, languages=("en", "de"), order=(0, 1), packed=0):
    """One table for each split, its columns in an order."""
    folder.mkdir(exist_ok=True)
    name_end = "-".join(languages[i] for i in order)
    for name, pairs in splits.items():
        lines = ["\t".join(pair[i] for i in order) for pair in pairs]
        save(folder / f"{name}.{name_end}.tsv", lines, packed)
    return folder


def write_mixed(folder):
    write_sides(folder, {"train": PAIRS["train"]}, packed=True)
    write_tables(folder, {"test": PAIRS["test"]}, order=(1, 0))
    return write_sides(folder, {"validation": PAIRS["validation"]})


@pytest.fixture
def data_of(base_config):
    """DataConfig of the files in a folder."""

    def make(directory, **changes):
        fields = {"corpus": "parallel_files", "directory": str(directory), **changes}
        changes = {f"data.{name}": value for name, value in fields.items()}
        return config.replace(base_config, changes).data

    return make


def text_of(loaded):
    return {name: list(pairs) for name, pairs in loaded.splits.items()}


def swapped(splits):
    return {name: [(b, a) for a, b in pairs] for name, pairs in splits.items()}


# Forms.

FORMS = {
    "sides": write_sides,
    "sides packed": lambda folder: write_sides(folder, packed=True),
    "tables": write_tables,
    "tables packed": lambda folder: write_tables(folder, packed=True),
    "tables of the other order": lambda folder: write_tables(folder, order=(1, 0)),
    "mixed": write_mixed,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_text_in_both_directions(form, data_of, tmp_path):
    folder = FORMS[form](tmp_path / "text")
    loaded = load_corpus(data_of(folder), tmp_path)
    assert text_of(loaded) == PAIRS
    # The hash of the manifest is of languages and text alone; here it is by hand.
    for split, pairs in PAIRS.items():
        for i, language in enumerate(("en", "de")):
            lines = "\n".join(pair[i] for pair in pairs)
            found = loaded.manifest["splits"][split][language]["sha256"]
            assert found == hashlib.sha256(lines.encode()).hexdigest()
    # The other direction is read from what was prepared.
    other = data_of(folder, source_language="de", target_language="en")
    assert read_manifest(other, tmp_path)["splits"] == loaded.manifest["splits"]
    assert text_of(load_corpus(other, tmp_path)) == swapped(PAIRS)


def test_forms_have_one_manifest_hash(data_of, tmp_path):
    hashes = {
        manifest_hash(load_corpus(data_of(write(tmp_path / name)), tmp_path).manifest)
        for name, write in FORMS.items()
    }
    assert len(hashes) == 1


def test_languages_and_splits_have_any_names(data_of, tmp_path):
    splits = dict(zip(("news-v9", "dev_2"), PAIRS.values(), strict=False))
    for write in (write_sides, write_tables):
        folder = write(tmp_path / write.__name__, splits, ("zh_Hans", "pt-br"))
        data = data_of(
            folder,
            source_language="pt-br",
            target_language="zh_Hans",
            train_split="news-v9",
            validation_split="dev_2",
            test_split=None,
        )
        loaded = load_corpus(data, tmp_path)
        assert text_of(loaded) == swapped(splits)
        assert loaded.splits["news-v9"].read([4, 0]) == [
            ("Ende", "\ufeffEnd"),
            ("Ein Hund .", "A dog ."),
        ]
        assert loaded.manifest["corpus"] == "parallel_files"


def test_last_line_needs_no_end(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    before = load_corpus(data_of(folder), tmp_path).manifest
    path = folder / "test.de"
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert read_manifest(data_of(folder), tmp_path) == before


def test_changed_text_is_another_corpus(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    load_corpus(data_of(folder), tmp_path)
    (folder / "test.de").write_text("Letzte\n")
    assert read_manifest(data_of(folder), tmp_path) is None
    assert list(load_corpus(data_of(folder), tmp_path).splits["test"]) == [
        ("Last", "Letzte")
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 6, 8])
def test_pairs_keep_their_order_over_several_files(
    count, data_of, tmp_path, monkeypatch
):
    """Three pairs a file of the prepared corpus: one, two or three files."""
    from transformer_ablation.data.parallel_files import builder

    monkeypatch.setattr(builder, "SHARD_PAIRS", 3)
    pairs = [(f"word {i}", f"Wort {i}") for i in range(count)]
    folder = write_sides(tmp_path / "text", {"train": pairs, "dev": pairs[:1]})
    data = data_of(folder, validation_split="dev", test_split=None)
    assert list(load_corpus(data, tmp_path).splits["train"]) == pairs
    made = [p for p in tmp_path.rglob("*train.array_record*") if p.is_file()]
    assert len(made) == (count + 2) // 3


def test_record_is_what_tfds_makes_of_the_features(tmp_path):
    from tensorflow_datasets.core.example_serializer import ExampleSerializer

    from transformer_ablation.data.parallel_files.builder import ParallelFiles

    builder = ParallelFiles(
        languages=("de", "en"), splits={}, data_dir=tmp_path, file_format="array_record"
    )
    features = builder.info.features
    serializer = ExampleSerializer(features.get_serialized_info())
    for english, german in PAIRS["train"]:
        example = features.encode_example({"de": german, "en": english})
        expected = serializer.serialize_example(example)
        assert builder._record((german, english)) == expected


# Faults.


def fault(data, cache):
    with pytest.raises(CorpusError) as caught:
        load_corpus(data, cache)
    assert read_manifest(data, cache) is None
    assert not list(cache.rglob("*array_record*"))
    return str(caught.value)


def test_missing_folder_is_named_with_what_it_must_hold(data_of, tmp_path):
    assert fault(data_of(tmp_path / "none"), tmp_path) == (
        f"data.directory: there is no folder {tmp_path / 'none'}; it must hold "
        "train.de and train.en, or train.de-en.tsv (plain or with .gz)"
    )


def test_missing_splits_are_all_named_with_what_is_there(data_of, tmp_path):
    folder = write_sides(tmp_path / "text", {"dev": PAIRS["test"]})
    message = fault(data_of(folder, test_split=None), tmp_path).splitlines()
    assert message == [
        f"data.train_split: {folder} has no split 'train'; it needs train.de and "
        "train.en, or train.de-en.tsv (plain or with .gz), and the folder holds "
        "dev.de, dev.en; add them, or name another split in data.train_split",
        f"data.validation_split: {folder} has no split 'validation'; it needs "
        "validation.de and validation.en, or validation.de-en.tsv (plain or with .gz), "
        "and the folder holds dev.de, dev.en; add them, or name another split in "
        "data.validation_split, or take pairs out of the training file for it: "
        "--config.data.holdout_pairs=1000",
    ]


def test_long_lists_of_files_are_cut(data_of, tmp_path):
    for i in range(14):
        (tmp_path / f"file{i:02}").touch()
    message = fault(data_of(tmp_path), tmp_path)
    assert "file10, file11 and 2 more; add them" in message
    assert "file12" not in message


def test_empty_folder_holds_no_file(data_of, tmp_path):
    (tmp_path / "text").mkdir()
    assert "the folder holds no file;" in fault(data_of(tmp_path / "text"), tmp_path)


def test_missing_language_is_named(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / "validation.de").unlink()
    assert fault(data_of(folder), tmp_path) == (
        f"{folder}: has validation.en, but no validation.de (plain or with .gz); a "
        "split needs a file for each language"
    )
    # A hold-out does not hide it.
    assert "no validation.de" in fault(data_of(folder, holdout_pairs=1), tmp_path)


@pytest.mark.parametrize("more", ["test.de.gz", "test.en-de.tsv", "test.de-en.tsv.gz"])
def test_split_in_two_forms_is_refused_with_the_names(more, data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / more).touch()
    message = fault(data_of(folder), tmp_path)
    assert message.startswith(f"{folder}: split 'test' is there more than once: ")
    for name in ("test.de", "test.en", more):
        assert name in message.partition("; keep ")[0]
    assert message.endswith(
        "; keep test.de and test.en, or test.de-en.tsv (plain or with .gz)"
    )


def test_two_tables_of_a_split_are_refused(data_of, tmp_path):
    folder = write_tables(tmp_path / "text")
    write_tables(folder, {"train": PAIRS["train"]}, order=(1, 0))
    message = fault(data_of(folder), tmp_path)
    assert "more than once: train.de-en.tsv, train.en-de.tsv; keep" in message


def test_unequal_line_counts_are_named_with_both_files(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / "validation.de").write_text("Eins\nZwei\nDrei")
    assert fault(data_of(folder), tmp_path) == (
        f"{folder / 'validation.de'} has 3 lines, but {folder / 'validation.en'} has "
        "2; line n of one must translate line n of the other"
    )


@pytest.mark.parametrize("packed", [False, True])
def test_undecodable_byte_is_placed(packed, data_of, tmp_path):
    folder = write_sides(tmp_path / "text", packed=packed)
    path = folder / ("validation.de.gz" if packed else "validation.de")
    content = "Eins\nZw\u00e4i\n".encode("latin-1")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert fault(data_of(folder), tmp_path) == (
        f"{path}: line 2, byte 3 of the line: 0xe4 is not UTF-8; convert the file to "
        "UTF-8"
    )


@pytest.mark.parametrize("packed", [False, True])
def test_byte_order_mark_is_refused_and_not_a_part_of_a_sentence(
    packed, data_of, tmp_path
):
    first = {"test": [("\ufeffLast", "Letzter")]}
    folder = write_sides(tmp_path / "text", PAIRS | first, packed=packed)
    message = fault(data_of(folder), tmp_path)
    name = "test.en.gz" if packed else "test.en"
    assert message.startswith(f"{folder / name}: line 1 begins with a byte order mark")
    assert "save the file as UTF-8 without it" in message


@pytest.mark.parametrize(
    ("line", "count"), [("", "1 column"), ("a", "1 column"), ("a\tb\tc", "3 columns")]
)
def test_wrong_number_of_columns_is_placed(line, count, data_of, tmp_path):
    folder = write_tables(tmp_path / "text")
    path = folder / "validation.en-de.tsv"
    path.write_text(f"One\tEins\nTwo\tZwei\n{line}\n")
    assert fault(data_of(folder), tmp_path) == (
        f"{path}: line 3 has {count}; every line must have two, with one tab between "
        "them (sentences with tabs need a file a language)"
    )


@pytest.mark.parametrize("name", ["test.de", "test.de.gz"])
def test_empty_file_is_named(name, data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / "test.de").unlink()
    (folder / name).touch()
    assert fault(data_of(folder), tmp_path) == (
        f"{folder / name}: is empty; it must hold a sentence a line"
    )


def test_split_without_a_sentence_is_refused(data_of, tmp_path):
    folder = write_sides(tmp_path / "text", PAIRS | {"test": [("A", " "), ("B", "")]})
    assert fault(data_of(folder), tmp_path) == (
        f"{folder / 'test.de'}: split 'test' has no sentence: all of its 2 lines are "
        "blank"
    )
    table = write_tables(tmp_path / "tables", PAIRS | {"test": [("A", "\u2028")]})
    assert fault(data_of(table), tmp_path) == (
        f"{table / 'test.en-de.tsv'}: split 'test' has no sentence: all of its 1 lines "
        "are blank in column 2"
    )


@pytest.mark.parametrize("damage", ["cut", "flipped", "no gzip"])
def test_damaged_gzip_is_named(damage, data_of, tmp_path):
    folder = write_sides(tmp_path / "text", packed=True)
    path = folder / "train.en.gz"
    content = bytearray(gzip.compress(b"One more line of text\n" * 99))
    if damage == "flipped":
        content[-5] ^= 1  # of the check sum
    kept = {"cut": content[:-9], "flipped": content, "no gzip": b"plain text\n"}
    path.write_bytes(kept[damage])
    message = fault(data_of(folder), tmp_path)
    assert message.startswith(f"{path}: damaged gzip file (")
    assert message.endswith("); copy or compress it again")


def test_folder_in_place_of_a_file_is_missing(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / "test.de").unlink()
    (folder / "test.de").mkdir()
    assert "no test.de" in fault(data_of(folder), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read_is_named(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    (folder / "test.de").chmod(0)
    message = fault(data_of(folder), tmp_path)
    assert message == f"{folder / 'test.de'}: cannot be read: Permission denied"


def test_file_changed_while_it_is_read_is_refused(data_of, tmp_path, monkeypatch):
    folder = write_sides(tmp_path / "text")
    asked = holdout.splits

    def change(*arguments):
        (folder / "test.de").write_text("Letzte\n")
        return asked(*arguments)

    monkeypatch.setattr(holdout, "splits", change)
    with pytest.raises(CorpusError) as caught:
        load_corpus(data_of(folder), tmp_path)
    assert str(caught.value) == (
        f"{folder / 'test.de'}: was changed while it was read; run the command again"
    )
    assert not list(tmp_path.rglob("*array_record*"))


# Reading.

ANY_LINE = strategies.text(
    strategies.characters(exclude_characters="\n", exclude_categories=["Cs"]),
    max_size=8,
)


@hypothesis.given(strategies.lists(strategies.tuples(ANY_LINE, ANY_LINE), min_size=1))
def test_any_text_is_read_as_it_was_written(tmp_path_factory, pairs):
    hypothesis.assume(not any(text.startswith("\ufeff") for text in pairs[0]))
    folder = tmp_path_factory.mktemp("text")
    for packed, end in ((False, ""), (True, ".gz")):
        write_sides(folder, {"a": pairs}, packed=packed)
        sides = (folder / f"a.en{end}", folder / f"a.de{end}")
        assert list(parallel_text.read_pairs(*sides)) == pairs
        table = [tuple(text.replace("\t", " ") for text in pair) for pair in pairs]
        write_tables(folder, {"a": table}, packed=packed)
        read = parallel_text.read_table(folder / f"a.en-de.tsv{end}")
        assert list(read) == table


def test_file_is_read_no_further_than_asked(tmp_path):
    """A fault far behind the first line is not reached."""
    path = tmp_path / "text"
    path.write_bytes(b"first\n" + b"line\n" * 10**6 + b"\xff\n")
    assert next(parallel_text.read_lines(path)) == "first"
    assert next(parallel_text.read_pairs(path, path)) == ("first", "first")


def peak_bytes(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", [write_sides, write_tables])
def test_memory_does_not_grow_with_the_files(write, data_of, tmp_path):
    """Located, drawn from and read: 5 and 20 MB of text take the same memory."""

    def peak(count):
        line = "some words of a sentence " * 5
        pairs = [(f"{i} {line}", f"{line} {i}") for i in range(count)]
        folder = write(tmp_path / str(count), {"train": pairs})
        del pairs
        data = data_of(folder, holdout_pairs=10)

        def read():
            located = files.locate(data, ("de", "en"), tmp_path / "notes")
            asked = holdout.asked(data, located)
            for _, pairs in holdout.splits(located, asked).values():
                for _ in pairs:
                    pass

        return peak_bytes(read)

    small, large = peak(20_000), peak(80_000)
    assert large < 1.2 * small


def test_unchanged_file_is_not_read_again(data_of, tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_SETTLED_NS", 0)
    folder = write_sides(tmp_path / "text")
    first = load_corpus(data_of(folder), tmp_path).manifest
    read, opened = scan._read, []

    def note(path, columns):
        opened.append(path.name)
        return read(path, columns)

    monkeypatch.setattr(scan, "_read", note)
    assert read_manifest(data_of(folder), tmp_path) == first
    assert opened == []
    # Another text of the same length.
    (folder / "test.en").write_text("Lost\n")
    assert read_manifest(data_of(folder), tmp_path) is None
    assert opened == ["test.en"]


def test_file_changed_a_moment_ago_is_read_again(data_of, tmp_path):
    """A second change within one tick of the clock would leave no trace."""
    notes = tmp_path / "notes"
    path = write_sides(tmp_path / "text") / "test.en"
    scan.scan(path, 1, notes)
    assert not notes.exists()


def test_damaged_note_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_SETTLED_NS", 0)
    path = write_sides(tmp_path / "text") / "train.en"
    before = scan.scan(path, 1, tmp_path / "notes")
    (note,) = (tmp_path / "notes").iterdir()
    other = note.read_text().replace('"lines": 5', '"lines": 4')
    for content in ("{", "[]", "7", "{}", '{"stamp": 1}', other):
        note.write_text(content)
        assert scan.scan(path, 1, tmp_path / "notes") == before
    # Five lines, of which one is empty.
    assert before.lines == 5 and before.filled == (4,)


def test_scan_goes_on_where_notes_cannot_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_SETTLED_NS", 0)
    path = write_sides(tmp_path / "text") / "train.en"
    (tmp_path / "notes").write_text("a file where a folder should be")
    assert scan.scan(path, 1, tmp_path / "notes").lines == 5


# Hold-out.

MANY = [(f"dog {i}", f"Hund {i}") for i in range(20)]


def held_out(pairs, count, seed=0, number=1):
    """The pairs of lowest SHA-256, German first, in the order of the text."""

    def rank(pair):
        text = f"{seed}\n{pair[1]}\n{pair[0]}"
        return hashlib.sha256(text.encode()).hexdigest()

    whole = [p for p in dict.fromkeys(pairs) if p[0].strip() and p[1].strip()]
    lowest = sorted(whole, key=rank)[count * (number - 1) : count * number]
    return [p for p in whole if p in lowest]


def test_held_out_pairs_leave_the_training_text(data_of, tmp_path):
    folder = write_sides(tmp_path / "text", {"train": MANY})
    found = text_of(load_corpus(data_of(folder, holdout_pairs=3), tmp_path))
    assert found["validation"] == held_out(MANY, 3, number=1)
    assert found["test"] == held_out(MANY, 3, number=2)
    scored = found["validation"] + found["test"]
    assert found["train"] == [pair for pair in MANY if pair not in scored]
    assert [len(found[s]) for s in ("train", "validation", "test")] == [14, 3, 3]


def test_hold_out_is_a_function_of_text_and_seed(data_of, tmp_path):
    """Neither of the form, nor of the direction, nor of another split."""

    def validation(write=write_sides, **changes):
        folder = write(tmp_path / write.__name__, {"train": MANY})
        data = data_of(folder, holdout_pairs=3, **changes)
        return list(load_corpus(data, tmp_path).splits["validation"])

    first = validation()
    assert validation() == first
    assert validation(write_tables) == first
    assert validation(test_split=None) == first
    german = validation(source_language="de", target_language="en")
    assert [(b, a) for a, b in german] == first
    other = validation(holdout_seed=1)
    assert other == held_out(MANY, 3, seed=1) != first


def test_hold_out_does_not_depend_on_the_order_of_the_text(data_of, tmp_path):
    for name, pairs in (("a", MANY), ("b", MANY[::-1])):
        write_sides(tmp_path / name, {"train": pairs})
    a, b = (
        load_corpus(data_of(tmp_path / name, holdout_pairs=3), tmp_path).splits["test"]
        for name in "ab"
    )
    assert list(a) == list(b)[::-1]


def test_copies_of_a_held_out_pair_leave_the_training_text_too(data_of, tmp_path):
    """Thrice the same text: each held-out pair stands in it three times."""
    folder = write_sides(tmp_path / "text", {"train": MANY * 3})
    data = data_of(folder, holdout_pairs=4, test_split=None)
    found = text_of(load_corpus(data, tmp_path))
    assert found["validation"] == held_out(MANY, 4)
    assert len(found["train"]) == 3 * 20 - 3 * 4
    assert not set(found["train"]) & set(found["validation"])


def test_pairs_with_a_blank_side_are_not_held_out(data_of, tmp_path):
    blank = [(f"word {i}", " ") for i in range(50)] + [("", f"Wort {i}") for i in "ab"]
    folder = write_sides(tmp_path / "text", {"train": blank + MANY})
    data = data_of(folder, holdout_pairs=9, test_split=None)
    found = text_of(load_corpus(data, tmp_path))
    assert found["validation"] == held_out(MANY, 9)
    assert len(found["train"]) == 52 + 11


def test_split_with_files_keeps_them_and_the_manifest_says_so(data_of, tmp_path):
    splits = {"train": MANY, "validation": PAIRS["validation"]}
    folder = write_sides(tmp_path / "text", splits)
    loaded = load_corpus(data_of(folder, holdout_pairs=3, holdout_seed=7), tmp_path)
    found = text_of(loaded)
    assert found["validation"] == PAIRS["validation"]
    assert found["test"] == held_out(MANY, 3, seed=7)
    assert len(found["train"]) == 17
    assert loaded.manifest["holdout"] == {
        "from_split": "train",
        "from_pairs": 20,
        "splits": ["test"],
        "pairs": 3,
        "seed": 7,
    }


def test_hold_out_where_every_split_has_files_is_refused(data_of, tmp_path):
    folder = write_sides(tmp_path / "text")
    assert fault(data_of(folder, holdout_pairs=2), tmp_path) == (
        f"data.holdout_pairs: 2, but {folder} has files of validation and test, and "
        "nothing is left to hold out; make it None, or move those files away"
    )


def test_more_than_the_text_has_is_not_held_out(data_of, tmp_path):
    """Of 20 pairs 19 can be held out, and ten for each of two splits cannot."""
    folder = write_sides(tmp_path / "text", {"train": MANY})
    files_of = f"{folder / 'train.de'} and {folder / 'train.en'}"
    assert fault(data_of(folder, holdout_pairs=10), tmp_path) == (
        f"data.holdout_pairs: 10 for each of validation and test cannot be held out of "
        f"{files_of} with 20 pairs, as some must be left to train on; lower it"
    )
    load_corpus(data_of(folder, holdout_pairs=19, test_split=None), tmp_path)


def test_copies_and_blank_sides_do_not_count_for_the_hold_out(data_of, tmp_path):
    pairs = [*MANY[:4], *MANY[:4], ("", "Leer"), ("Blank", "")]
    folder = write_tables(tmp_path / "text", {"train": pairs})
    assert fault(data_of(folder, holdout_pairs=3), tmp_path) == (
        "data.holdout_pairs: 3 for each of validation and test cannot be held out of "
        f"{folder / 'train.en-de.tsv'} with 4 different pairs with text on both sides, "
        "as some must be left to train on; lower it"
    )
    same = write_tables(tmp_path / "same", {"train": [MANY[0]] * 5})
    message = fault(data_of(same, holdout_pairs=1, test_split=None), tmp_path)
    assert "1 for each of validation" in message and "1 different pairs" in message
