"""Corpora: text arrives unchanged, faults are named, the cache is never half full."""

import copy
import dataclasses
import gzip
import hashlib
import http.client
import io
import json
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from transformer_ablation import config
from transformer_ablation.data import checks, corpus, parallel_text, storage
from transformer_ablation.data.corpus import (
    CorpusError,
    DownloadError,
    load_corpus,
    manifest_differences,
    manifest_hash,
    read_manifest,
)

TEXT = {
    "train.en": "A dog .\nTwo  cats\r\nIt\u2028is\x85 one line\n\nEnd",
    "train.de": "Ein Hund .\n Zwei Katzen \nDas\u2028ist\x85 eine Zeile\nLeer\nEnde\n",
    "val.en": "One\n\n",
    "val.de": "Eins\nZwei\n",
    "test_2016_flickr.en": "Last\n",
    "test_2016_flickr.de": "Letzter\n",
}
TRAIN_EN = ["A dog .", "Two  cats\r", "It\u2028is\x85 one line", "", "End"]


def write(folder, text=TEXT):
    folder.mkdir(exist_ok=True)
    for name, content in text.items():
        (folder / name).write_bytes(content.encode())
    return folder


@pytest.fixture
def data_of(base_config):
    """DataConfig of Multi30k in a folder."""

    def make(directory, **changes):
        fields = {
            "corpus": "multi30k",
            "directory": None if directory is None else str(directory),
            "test_split": "test_2016_flickr",
            **changes,
        }
        changes = {f"data.{name}": value for name, value in fields.items()}
        return config.replace(base_config, changes).data

    return make


@pytest.fixture(scope="module")
def prepared_cache(tmp_path_factory):
    """A folder with text and a cache in which it has been prepared once."""
    return write(tmp_path_factory.mktemp("text")), tmp_path_factory.mktemp("cache")


@pytest.fixture
def loaded(prepared_cache, data_of):
    folder, cache = prepared_cache
    return load_corpus(data_of(folder), cache)


def test_sentences_arrive_unchanged_and_in_order(loaded):
    train = loaded.splits["train"]
    assert [source for source, _ in train] == TRAIN_EN
    assert list(train)[1] == ("Two  cats\r", " Zwei Katzen ")
    assert len(train) == 5
    assert list(loaded.splits["validation"]) == [("One", "Eins"), ("", "Zwei")]
    assert list(loaded.splits) == ["train", "validation", "test_2016_flickr"]


def test_pairs_are_read_at_any_indices(loaded):
    pairs = loaded.splits["train"].read([4, 0])
    assert pairs == [("End", "Ende"), ("A dog .", "Ein Hund .")]


def test_manifest_counts_what_is_there(loaded):
    train = loaded.manifest["splits"]["train"]
    # "A dog ." 3, "Two  cats" 2, "It is one line" 4 (U+2028, U+0085 are spaces), 0, 1
    assert train["pairs"] == 5
    assert train["en"]["words"] == 3 + 2 + 4 + 0 + 1
    assert train["en"]["max_words"] == 4
    assert train["en"]["characters"] == 7 + 10 + 15 + 0 + 3
    expected = hashlib.sha256("\n".join(TRAIN_EN).encode()).hexdigest()
    assert train["en"]["sha256"] == expected
    assert loaded.manifest["corpus"] == "multi30k"
    assert loaded.manifest["official"] is False
    languages = loaded.manifest["source_language"], loaded.manifest["target_language"]
    assert languages == ("en", "de")


def test_manifest_holds_the_findings_of_each_split(loaded):
    findings = loaded.manifest["splits"]["train"]["checks"]
    found = {
        (side, kind): (finding["count"], finding["line"], finding["excerpt"])
        for side, kinds in findings.items()
        for kind, finding in kinds.items()
        if finding["count"]
    }
    assert found == {
        ("en", "double_space"): (1, 2, "Two  cats\r"),
        ("en", "carriage_return"): (1, 2, "Two  cats\r"),
        ("en", "line_separator"): (1, 3, "It\u2028is\x85 one line"),
        ("en", "next_line"): (1, 3, "It\u2028is\x85 one line"),
        ("en", "empty"): (1, 4, ""),
        ("de", "leading_space"): (1, 2, " Zwei Katzen "),
        ("de", "trailing_space"): (1, 2, " Zwei Katzen "),
        ("de", "line_separator"): (1, 3, "Das\u2028ist\x85 eine Zeile"),
        ("de", "next_line"): (1, 3, "Das\u2028ist\x85 eine Zeile"),
    }
    assert loaded.manifest["splits"]["validation"]["checks"]["en"]["empty"] == {
        "count": 1,
        "line": 2,
        "excerpt": "",
    }
    assert loaded.manifest["checks"] == {
        "long_words": 100,
        "length_ratio": 3,
        "length_ratio_words": 10,
        "typical": None,  # of five pairs nothing is learned
    }


def test_report_by_other_rules_is_made_again(prepared_cache, data_of, monkeypatch):
    folder, cache = prepared_cache
    load_corpus(data_of(folder), cache)
    monkeypatch.setattr(checks, "RULES", checks.RULES + 1)
    assert read_manifest(data_of(folder), cache) is None


def test_manifest_says_what_training_shares_with_scored_splits(data_of, tmp_path):
    text = TEXT | {"val.en": "End\n\n", "val.de": "Schluss\nLeer\n"}
    text |= {"test_2016_flickr.en": "A dog .", "test_2016_flickr.de": "Ein Hund ."}
    data = data_of(write(tmp_path / "text", text))
    manifest = load_corpus(data, tmp_path).manifest
    none = {"count": 0, "line": None, "excerpt": None}
    dog = {"count": 1, "line": 1, "excerpt": {"de": "Ein Hund .", "en": "A dog ."}}
    assert manifest["overlaps"] == {
        "validation": {
            "pair": none,
            "en": {"count": 1, "line": 5, "excerpt": "End"},
            "de": none,  # Leer stands beside an empty line
        },
        "test_2016_flickr": {
            "pair": dog,
            "en": {**dog, "excerpt": "A dog ."},
            "de": {**dog, "excerpt": "Ein Hund ."},
        },
    }
    # Another split trained on is another overlap of the same preparation.
    other = dataclasses.replace(
        data, train_split="validation", validation_split="train"
    )
    found = load_corpus(other, tmp_path).manifest["overlaps"]["train"]["en"]
    assert found == {"count": 1, "line": 1, "excerpt": "End"}


def test_mix_ups_are_judged_by_what_the_largest_split_has(data_of, tmp_path):
    english = (
        "the of and to in is that it was for on are with as his they at be".split()
    )
    german = "der die und den von das mit sich des auf für ist nicht ein als es".split()
    english += ["this", "from"]
    german += ["auch", "an", "werden", "eine"]
    lines = {
        "train.en": [" ".join(english)] * 40 + [" ".join(german)],
        "train.de": [" ".join(german)] * 40 + ["ein Satz"],
        "val.en": ["this is from the dog", "dies und das und der"],
        "val.de": ["this is from the dog", "das ist der Hund"],
    }
    text = {name: "\n".join(content) for name, content in lines.items()}
    data = data_of(write(tmp_path / "text", text), test_split=None)
    manifest = load_corpus(data, tmp_path).manifest
    assert manifest["checks"]["typical"] == {
        "unit": "words",
        "sample_pairs": 41,
        "de": 20,
        "en": 20,
    }
    found = {
        (split, language): facts["checks"][language]["other_language"]
        for split, facts in manifest["splits"].items()
        for language in ("de", "en")
    }
    assert {key: finding["line"] for key, finding in found.items()} == {
        ("train", "de"): None,
        ("train", "en"): 41,
        ("validation", "de"): 1,
        ("validation", "en"): 2,
    }
    assert found["train", "de"] == {"count": 0, "line": None, "excerpt": None}


def test_other_direction_swaps_sides_and_shares_the_cache(
    prepared_cache, data_of, loaded
):
    folder, cache = prepared_cache
    data = data_of(folder, source_language="de", target_language="en")
    assert read_manifest(data, cache)["splits"] == loaded.manifest["splits"]
    other = load_corpus(data, cache)
    assert list(other.splits["validation"]) == [("Eins", "One"), ("Zwei", "")]
    assert manifest_hash(other.manifest) != manifest_hash(loaded.manifest)


def test_manifest_hash_follows_the_text_alone(loaded):
    manifest = json.loads(json.dumps(loaded.manifest))
    manifest.update(official=True, version="9", corpus="other", overlaps={}, checks={})
    manifest["splits"]["train"]["checks"] = {}
    assert manifest_hash(manifest) == manifest_hash(loaded.manifest)
    manifest["splits"]["test_2016_flickr"]["de"]["sha256"] = "0"
    assert manifest_hash(manifest) != manifest_hash(loaded.manifest)


def test_differences_of_manifests_name_the_splits_whose_text_differs(loaded):
    now = copy.deepcopy(loaded.manifest)
    now["splits"]["validation"]["de"]["sha256"] = "0" * 64
    now["splits"]["train"]["en"]["sha256"] = "1" * 64
    now["splits"]["train"]["pairs"] += 1000
    pairs = loaded.manifest["splits"]["train"]["pairs"]
    assert manifest_differences(loaded.manifest, now) == [
        f"split train: {pairs:,} pairs, {pairs + 1000:,} now",
        "split validation: the text of de differs",
    ]
    assert manifest_differences(loaded.manifest, loaded.manifest) == []


def test_manifest_is_none_before_and_the_same_after(prepared_cache, data_of, tmp_path):
    folder, cache = prepared_cache
    assert read_manifest(data_of(folder), tmp_path) is None
    assert read_manifest(data_of(folder / "none"), cache) is None
    again = load_corpus(data_of(folder), cache)
    assert read_manifest(data_of(folder), cache) == again.manifest


def test_compressed_text_is_the_same_corpus(prepared_cache, data_of, loaded, tmp_path):
    for name, content in TEXT.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert read_manifest(data_of(tmp_path), prepared_cache[1]) == loaded.manifest


def test_changed_text_is_another_corpus(prepared_cache, data_of, tmp_path):
    changed = write(tmp_path, TEXT | {"val.de": "Eins\nDrei\n"})
    assert read_manifest(data_of(changed), prepared_cache[1]) is None


def test_without_a_test_split_its_files_are_not_needed(data_of, tmp_path):
    text = {name: x for name, x in TEXT.items() if not name.startswith("test")}
    data = data_of(write(tmp_path / "text", text), test_split=None)
    assert list(load_corpus(data, tmp_path).manifest["splits"]) == [
        "train",
        "validation",
    ]


def test_manifest_and_second_load_import_neither_tfds_nor_jax(prepared_cache, loaded):
    folder, cache = prepared_cache
    program = (
        "import sys\nfrom pathlib import Path\nfrom configs.base import get_config\n"
        "from transformer_ablation import config\n"
        "from transformer_ablation.data import batches, corpus, tokens\n"
        "changes = {'data.corpus': 'multi30k', 'data.test_split': 'test_2016_flickr',\n"
        f"  'data.directory': {str(folder)!r}}}\n"
        "data = config.replace(config.from_mapping(get_config()), changes).data\n"
        f"assert corpus.read_manifest(data, Path({str(cache)!r})) is not None\n"
        f"corpus.load_corpus(data, Path({str(cache)!r}))\n"
        "print({'tensorflow_datasets', 'jax', 'flax', 'grain'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "damage", ["shorter", "missing", "no contents", "flipped", "zeros"]
)
def test_damaged_preparation_is_done_again(data_of, tmp_path, damage):
    data = data_of(write(tmp_path / "text"))
    before = load_corpus(data, tmp_path).manifest
    records = next((tmp_path / "format1").rglob("*train.array_record*"))
    if damage == "shorter":
        records.write_bytes(records.read_bytes()[:-1])
    elif damage == "missing":
        records.unlink()
    elif damage == "flipped":
        content = records.read_bytes()
        assert content.count(b"dog") == 1
        records.write_bytes(content.replace(b"dog", b"dof"))
    elif damage == "zeros":
        records.write_bytes(bytes(records.stat().st_size))
    else:
        next((tmp_path / "format1").rglob("contents.json")).write_text("{")
    assert read_manifest(data, tmp_path) is None
    again = load_corpus(data, tmp_path)
    assert again.manifest == before
    assert [source for source, _ in again.splits["train"]] == TRAIN_EN


def fault(data, cache):
    with pytest.raises(CorpusError) as caught:
        load_corpus(data, cache)
    assert read_manifest(data, cache) is None
    return str(caught.value)


def test_missing_folder_is_named(data_of, tmp_path):
    message = fault(data_of(tmp_path / "none"), tmp_path)
    assert f"data.directory: there is no folder {tmp_path / 'none'}" in message
    assert "train.en" in message and "val.de" in message


def test_missing_files_are_named_on_both_sides(data_of, tmp_path):
    text = {name: x for name, x in TEXT.items() if not name.startswith("val")}
    message = fault(data_of(write(tmp_path / "text", text)), tmp_path)
    assert "val.en" in message and "val.de" in message
    assert "it holds train.de, train.en, test" in message


def test_unequal_line_counts_are_named(data_of, tmp_path):
    folder = write(tmp_path / "text", TEXT | {"val.de": "Eins\nZwei\nDrei"})
    message = fault(data_of(folder), tmp_path)
    assert f"{folder / 'val.de'} has 3 lines" in message
    assert f"{folder / 'val.en'} has 2" in message


def test_undecodable_byte_is_placed(data_of, tmp_path):
    folder = write(tmp_path / "text")
    (folder / "val.de").write_bytes("Eins\nZw\u00e4i".encode("latin-1"))
    message = fault(data_of(folder), tmp_path)
    assert f"{folder / 'val.de'}: line 2, byte 3 of the line: 0xe4" in message


def test_empty_split_is_refused(data_of, tmp_path):
    folder = write(tmp_path / "text", TEXT | {"val.de": "", "val.en": ""})
    assert fault(data_of(folder), tmp_path) == (
        f"{folder / 'val.de'}: is empty; it must hold a sentence a line"
    )


def test_split_of_blank_lines_is_refused(data_of, tmp_path):
    folder = write(tmp_path / "text", TEXT | {"val.en": "\n \n"})
    assert fault(data_of(folder), tmp_path) == (
        f"{folder / 'val.en'}: split 'validation' has no sentence: all of its 2 lines "
        "are blank"
    )


def test_file_that_is_there_twice_is_refused(data_of, tmp_path):
    """Which of the two was meant cannot be known."""
    folder = write(tmp_path / "text")
    (folder / "val.en.gz").write_bytes(gzip.compress(b"One\nTwo\n"))
    assert fault(data_of(folder), tmp_path) == (
        f"{folder}: there twice, plain and with .gz: val.en; keep one of each"
    )


def test_damaged_gzip_is_named(data_of, tmp_path):
    folder = write(tmp_path / "text")
    (folder / "val.de").unlink()
    (folder / "val.de.gz").write_bytes(gzip.compress(b"Eins\nZwei\n" * 99)[:-9])
    message = fault(data_of(folder), tmp_path)
    assert "val.de.gz: damaged gzip file" in message


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\x0cc\x1dd\xc2\x85e\xe2\x80\xa8f", ["a\r", "b\x0cc\x1dd\x85e\u2028f"]),
    ],
)
def test_lines_end_at_line_feeds_only(content, lines, tmp_path):
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    assert list(parallel_text.read_lines(tmp_path / "plain")) == lines
    assert list(parallel_text.read_lines(tmp_path / "packed.gz")) == lines


def test_without_a_network_the_folder_is_asked_for(data_of, tmp_path, monkeypatch):
    def refuse(url, **_):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(DownloadError) as caught:
        load_corpus(data_of(None), tmp_path)
    message = str(caught.value)
    assert caught.value.exit_code == 1
    assert "no route" in message and "--config.data.directory=DIR" in message
    for name in TEXT:
        assert name in message
    assert list(tmp_path.rglob("*.gz")) == []


def test_download_that_breaks_off_goes_on_with_what_is_missing(
    data_of, tmp_path, monkeypatch, multi30k_directory
):
    asked = []

    class Broken(io.BytesIO):
        def read(self):
            raise http.client.IncompleteRead(b"half")

    def serve(url, **_):
        asked.append(name := url.rpartition("/")[2])
        if len(asked) == 3:
            return Broken()
        return (multi30k_directory / name).open("rb")

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    data = data_of(None, train_split="test_2017_flickr")
    with pytest.raises(DownloadError, match="IncompleteRead.*data.directory=DIR"):
        load_corpus(data, tmp_path)
    first, second, broken = asked
    assert sorted(p.name for p in tmp_path.rglob("*.gz")) == sorted([first, second])
    assert load_corpus(data, tmp_path).manifest["official"] is True
    assert asked[3] == broken
    assert len(set(asked)) == 6 == len(asked) - 1


def test_download_of_another_content_is_refused(data_of, tmp_path, monkeypatch):
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda url, **_: io.BytesIO(gzip.compress(b"x\n"))
    )
    with pytest.raises(DownloadError, match="not the published file"):
        load_corpus(data_of(None), tmp_path)
    assert list(tmp_path.rglob("*.gz")) == []


def test_multi30k_is_as_published(data_of, tmp_path, multi30k_directory, monkeypatch):
    """Downloaded (from files at hand) and checked against the published sums."""
    asked = []

    def serve(url, **_):
        asked.append(url)
        return (multi30k_directory / url.rpartition("/")[2]).open("rb")

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    # Another small split stands in for the large one of the training pairs.
    data = data_of(None, train_split="test_2017_flickr")
    manifest = load_corpus(data, tmp_path).manifest
    assert len(asked) == 6
    assert all(
        "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1" in x for x in asked
    )
    assert manifest["official"] is True
    pairs = [split["pairs"] for split in manifest["splits"].values()]
    assert pairs == [1000, 1014, 1000]
    # A folder with the same text needs nothing more.
    in_folder = data_of(multi30k_directory, train_split="test_2017_flickr")
    assert read_manifest(in_folder, tmp_path) == manifest


def wmt14_folder(base, text):
    """A folder as TFDS prepares wmt14_translate/de-en, made by another builder."""
    from transformer_ablation.data.multi30k.builder import Multi30k

    files = {
        split: {x: text / f"{name}.{x}" for x in ("de", "en")}
        for split, name in {
            "train": "train",
            "validation": "val",
            "test": "test_2016_flickr",
        }.items()
    }
    builder = Multi30k(
        files=files, config="de-en", data_dir=base, file_format="array_record"
    )
    builder.download_and_prepare(download_dir=base / "downloads")
    folder = base / "wmt14_translate" / "de-en" / "1.0.0"
    shutil.copytree(base / "multi30k" / "de-en" / "1.0.0", folder)
    for path in folder.iterdir():
        if "array_record" in path.name:
            path.rename(path.with_name(path.name.replace("multi30k", folder.parts[-3])))
    info = folder / "dataset_info.json"
    info.write_text(info.read_text().replace('"multi30k"', '"wmt14_translate"'))
    return info


def test_wmt14_is_read_where_tfds_prepared_it(data_of, tmp_path):
    info = wmt14_folder(tmp_path / "tfds", write(tmp_path / "text"))
    data = data_of(tmp_path / "tfds", corpus="wmt14", test_split="test")
    loaded = load_corpus(data, tmp_path / "cache")
    assert list(loaded.splits["test"]) == [("Last", "Letzter")]
    assert loaded.manifest["splits"]["train"]["pairs"] == 5
    assert read_manifest(data, tmp_path / "cache") == loaded.manifest
    info.write_text(info.read_text().replace("array_record", "tfrecord"))
    assert "tfrecord; array_record is needed" in fault(data, tmp_path / "cache")


@pytest.fixture
def wmt14_data(data_of, tmp_path):
    """DataConfig of a prepared WMT folder, and the folder."""
    info = wmt14_folder(tmp_path / "tfds", write(tmp_path / "text"))
    data = data_of(tmp_path / "tfds", corpus="wmt14", test_split="test")
    return data, info.parent


def test_wmt14_of_other_text_is_another_corpus(wmt14_data, tmp_path):
    """Also where TFDS's notes about it are the same."""
    data, folder = wmt14_data
    before = load_corpus(data, tmp_path / "cache")
    info = (folder / "dataset_info.json").read_bytes()
    other = TEXT | {"test_2016_flickr.en": "Lost\n"}
    text = write(tmp_path / "other", other)
    made = wmt14_folder(tmp_path / "tfds2", text).parent
    assert (made / "dataset_info.json").read_bytes() == info
    for path in made.iterdir():
        shutil.copy(path, folder / path.name)
    assert read_manifest(data, tmp_path / "cache") is None
    after = load_corpus(data, tmp_path / "cache")
    assert list(after.splits["test"]) == [("Lost", "Letzter")]
    assert manifest_hash(after.manifest) != manifest_hash(before.manifest)


def test_wmt14_that_changes_while_it_is_read_is_refused(wmt14_data, tmp_path):
    data, folder = wmt14_data
    loaded = load_corpus(data, tmp_path / "cache")
    loaded.check_unchanged()
    path = next(folder.glob("*train.array_record*"))
    path.write_bytes(path.read_bytes())
    with pytest.raises(CorpusError, match="tfds was changed while it was read"):
        loaded.check_unchanged()


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_wmt14_without_one_of_its_files_is_refused(wmt14_data, tmp_path, split):
    data, folder = wmt14_data
    load_corpus(data, tmp_path / "cache")
    (path,) = folder.glob(f"*{split}.array_record*")
    path.unlink()
    message = fault(data, tmp_path / "cache")
    assert f"{folder} lacks {path.name}; copy the whole folder again" in message


def test_wmt14_with_damaged_notes_is_refused(wmt14_data, tmp_path):
    data, folder = wmt14_data
    (folder / "dataset_info.json").write_text('{"fileFormat": "array_record"}')
    assert "holds no prepared wmt14" in fault(data, tmp_path / "cache")


def test_damaged_records_are_named_with_the_remedy(wmt14_data, tmp_path):
    """Those of a folder of the user, of which no digest is kept."""
    data, folder = wmt14_data
    (path,) = folder.glob("*train.array_record*")
    path.write_bytes(bytes(path.stat().st_size))
    message = fault(data, tmp_path / "cache")
    assert message.startswith(f"{folder}: split train cannot be read (RuntimeError: ")
    assert "restore the folder from a copy" in message and "\n" not in message


def test_wmt14_that_is_not_there_is_refused(data_of, tmp_path):
    data = data_of(tmp_path, corpus="wmt14", test_split="test", target_language="fr")
    message = fault(data, tmp_path)
    assert "holds no prepared wmt14_translate/fr-en/1.0.0" in message
    assert "download_and_prepare" in message


def test_wmt14_without_a_network_fails_with_one_message(data_of, tmp_path, monkeypatch):
    def refuse(url, **_):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(DownloadError, match="no route.*--config.data.directory=DIR"):
        load_corpus(data_of(None, corpus="wmt14", test_split="test"), tmp_path)


def test_line_end_inside_a_sentence_is_refused():
    class Split:
        def __getitems__(self, indices):
            return [{"de": b"ab", "en": b"c\nd"} for _ in indices]

    splits = {"test": corpus.Pairs(Split, 1, "de", "en")}
    with pytest.raises(CorpusError, match="split test, pair 0, en: a line end"):
        corpus._describe(splits, ("de", "en"))


# The cache itself.


def fill_with(text):
    def fill(folder):
        (folder / "a").write_text(text)
        return {"text": text}

    return fill


def test_folder_that_fails_half_way_is_not_there(tmp_path):
    def fail(folder):
        (folder / "a").write_text("half")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        storage.publish(tmp_path / "x", fail)
    assert storage.read(tmp_path / "x") is None
    assert [p.name for p in tmp_path.iterdir()] == ["x.lock"]


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / ".x.abc").mkdir()
    (tmp_path / ".y.abc").mkdir()
    storage.publish(tmp_path / "x", fill_with("whole"))
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"x", "x.lock", ".y.abc"}


def test_published_folder_is_not_made_again(tmp_path):
    storage.publish(tmp_path / "x", fill_with("first"))
    assert storage.publish(tmp_path / "x", fill_with("second")) == {"text": "first"}


def test_flipped_byte_is_seen_where_digests_are_kept(tmp_path):
    storage.publish(tmp_path / "x", fill_with("first"), digests=True)
    (tmp_path / "x" / "a").write_text("farst")
    assert storage.read(tmp_path / "x") is None
    facts = storage.publish(tmp_path / "x", fill_with("again"), digests=True)
    assert facts == {"text": "again"} == storage.read(tmp_path / "x")


def test_two_at_once_fill_a_folder_once(tmp_path):
    filled, begun = [], threading.Event()

    def fill(folder):
        begun.set()
        filled.append(folder)
        threading.Event().wait(0.2)
        return {"by": len(filled)}

    results = []

    def publish():
        results.append(storage.publish(tmp_path / "x", fill))

    threads = [threading.Thread(target=publish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun.is_set() and len(filled) == 1
    assert results == [{"by": 1}, {"by": 1}]


def test_full_disk_is_not_hidden_behind_a_library(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    def fail(folder):
        raise RuntimeError("riegeli: cannot append")

    with pytest.raises(OSError, match="No space left"):
        storage.publish(tmp_path / "x", fail)
