"""WMT 2014 by TFDS's own builder, from tiny archives in the shape of the real ones.

Only the download itself is not tried: the archives lie where a user may put them.
"""

import contextlib
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import types
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tensorflow_datasets.core import shuffle
from tensorflow_datasets.core.download import checksums, downloader
from tensorflow_datasets.translate import wmt
from tensorflow_datasets.translate.wmt14 import Wmt14Translate

from configs import base
from experiments import command, prepare
from transformer_ablation import config
from transformer_ablation.data import tfds_buckets, wmt14
from transformer_ablation.data.corpus import (
    DownloadError,
    load_corpus,
    manifest_hash,
    read_manifest,
)

# (German, English) and (French, English) by the names that TFDS gives their parts.
# newstest2013 is one text in many languages: its English is the same.
GERMAN = {
    "europarl_v7": [
        ("Wiederaufnahme der Sitzungsperiode", "Resumption of the session"),
        ("", "(Applause)"),
        ("Frau Präsidentin, zur\rGeschäftsordnung.\r", "Madam President,\ra point."),
        ("(Beifall)", ""),
        ("Er\u2028sagte\u2029Ja.", "He\u2028said\x85yes."),
    ],
    "commoncrawl": [
        ("Preise &amp; Angebote &lt;b&gt;", "Rates &amp; offers &quot;now&quot;"),
        ("  Leerzeichen \u00a0 ", "\tTab & spaces  "),
        ("&#39;Straße&#39;", "A&#x2F;B"),
    ],
    "newscommentary_v9": [
        (f"Der Hund {i} jagt die Katze {i}.", f"Dog {i} chases cat {i}.")
        for i in range(30)
    ],
    "newstest2013": [
        ("Eine republikanische Strategie", "A Republican strategy"),
        ("Sie &amp; er\u2028zwei", "She & he\x85two"),
        ("Drei\r", "Three"),
        ("Vier", "Four"),
    ],
    "newstest2014": [
        ("Gutach: Noch mehr Sicherheit", "Gutach: Increased safety"),
        ("&quot;Zwei&quot; &amp; \u2028drei", "&quot;Two&quot; &amp; \u2028three"),
        ("Vier <i>fünf</i>", "Four <i>five</i>"),
    ],
}
FRENCH = {
    "europarl_v7": [("Reprise de la session", "Resumption of the session")],
    "commoncrawl": [("Prix &amp; offres\r", "Rates &amp; offers\r")],
    "multiun": [
        ("RÉSOLUTION 918 (1994)", "RESOLUTION 918 (1994)"),
        ("Le Conseil de sécurité,", "The Security Council,"),
    ],
    "newscommentary_v9": [("L’or à 10 000 dollars\u00a0?", "$10,000 Gold?")],
    "gigafren": [
        ("Plan du site\r", "Site map\r"),
        ("Lignes\u2028et &lt;pages&gt;", "Lines\u2028and &lt;pages&gt;"),
        ("", "Only one side"),
    ],
    "newstest2013": [
        ("Une stratégie républicaine", "A Republican strategy"),
        ("Elle &amp; lui", "She & he\x85two"),
        ("Trois", "Three"),
        ("Quatre", "Four"),
    ],
    "newstest2014": [
        ("Un &quot;saut&quot;", "A &quot;leap&quot;"),
        ("Encore\u2028un", "One more"),
    ],
}
PARTS = {"de": GERMAN, "fr": FRENCH}
TRAINING = "europarl_v7 commoncrawl multiun newscommentary_v9 gigafren".split()
SPLITS = {
    "train": TRAINING,
    "validation": ["newstest2013"],
    "test": ["newstest2014"],
}


def lines(part, side):
    return "".join(f"{pair[side]}\n" for pair in part).encode()


def sgml(part, side):
    segments = "".join(
        f'<seg id="{i}">{pair[side]}</seg>\n' for i, pair in enumerate(part, 1)
    )
    return (
        '<srcset setid="newstest2014" srclang="any">\n<doc sysid="ref" docid="1" '
        f'genre="news" origlang="de">\n<p>\n{segments}</p>\n</doc>\n</srcset>\n'
    ).encode()


def archives():
    """Name -> path inside -> content, beside files that are not asked for."""
    europarl = {"training/europarl-v7.cs-en.cs": b"Jiny jazyk\n"}
    crawl = {"commoncrawl.de-en.annotation": b"http://example.org\n"}
    dev = {"dev/newstest2012.de": b"Ein anderes Jahr\n"}
    news, un, giga = {}, {}, {}
    for language, parts in PARTS.items():
        for side, name in enumerate((language, "en")):
            pair = f"{language}-en.{name}"
            europarl[f"training/europarl-v7.{pair}"] = lines(parts["europarl_v7"], side)
            crawl[f"commoncrawl.{pair}"] = lines(parts["commoncrawl"], side)
            part = parts["newscommentary_v9"]
            news[f"training/news-commentary-v9.{pair}"] = lines(part, side)
            dev[f"dev/newstest2013.{name}"] = lines(parts["newstest2013"], side)
            kind = "ref" if name == "en" else "src"
            path = f"dev/newstest2014-{language}en-{kind}.{name}.sgm"
            dev[path] = sgml(parts["newstest2014"], side)
    for side, name in enumerate(("fr", "en")):
        un[f"un/undoc.2000.fr-en.{name}"] = lines(FRENCH["multiun"], side)
        packed = gzip.compress(lines(FRENCH["gigafren"], side))
        giga[f"giga-fren.release2.fixed.{name}.gz"] = packed
    return {
        "training-parallel-europarl-v7.tgz": europarl,
        "training-parallel-commoncrawl.tgz": crawl,
        "training-parallel-nc-v9.tgz": news,
        "dev.tgz": dev,
        "training-parallel-un.tgz": un,
        "training-giga-fren.tar": giga,
    }


def write_archives(cache):
    """Where the user puts what was fetched by other means."""
    folder = cache / "downloads" / "wmt14" / "manual"
    folder.mkdir(parents=True)
    for name, files in archives().items():
        with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as tar:
            for path, content in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return folder


def data_of(source, target, **changes):
    fields = {"source_language": source, "target_language": target, **changes}
    changes = {f"data.{name}": value for name, value in fields.items()}
    return config.replace(config.from_mapping(base.get_config()), changes).data


def urls_of(language, folder):
    """What TFDS's builder of a pair downloads."""
    builder = Wmt14Translate(config=f"{language}-en", data_dir=folder)
    names = [name for part in builder.subsets.values() for name in part]
    return [url for name in names for url in wmt.DATASET_MAP[name].get_url(language)]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Nothing is fetched in these tests."""

    def refuse(*_, **__):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(downloader, "_open_url", refuse)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with all archives, in which each pair is prepared once."""
    cache = tmp_path_factory.mktemp("cache")
    write_archives(cache)
    return cache


@pytest.fixture
def published(cache, monkeypatch, tmp_path):
    """The sums of the tiny archives stand for those of the real ones."""
    folder = cache / "downloads" / "wmt14" / "manual"
    real = checksums.get_all_url_infos()
    ours = {
        url: checksums.compute_url_info(folder / real[url].filename)
        for language in PARTS
        for url in urls_of(language, tmp_path)
    }
    monkeypatch.setattr(checksums, "get_all_url_infos", lambda: dict(ours))
    monkeypatch.setattr(Wmt14Translate, "url_infos", None)


def expected(language, split):
    """Pairs in the order that TFDS documents: by MD5 of split and key.

    A pair with a side of no characters is not among them.
    """
    keyed = [
        (hashlib.md5(f"{split}{part}/0/{i}".encode()).hexdigest(), pair)
        for part in SPLITS[split]
        for i, pair in enumerate(PARTS[language].get(part, []))
        if all(pair)
    ]
    return [pair for _, pair in sorted(keyed)]


COUNTS = {"de": [36, 4, 3], "fr": [7, 4, 2]}
DIRECTIONS = [("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en")]


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_text_of_the_archives_arrives_unharmed(source, target, cache, published):
    """Every split, in its direction, its order and to the letter."""
    other = source if target == "en" else target
    loaded = load_corpus(data_of(source, target), cache)
    assert (loaded.source_language, loaded.target_language) == (source, target)
    assert [len(pairs) for pairs in loaded.splits.values()] == COUNTS[other]
    for split, pairs in loaded.splits.items():
        swapped = [pair[::-1] for pair in expected(other, split)]
        assert list(pairs) == (expected(other, split) if target == "en" else swapped)
    assert loaded.manifest["version"] == "1.0.0"
    assert read_manifest(data_of(source, target), cache) == loaded.manifest


def test_newstest_sets_are_validation_and_test(cache, published):
    """Told apart by a sentence that stands in one of them only."""
    loaded = load_corpus(data_of("en", "de"), cache)
    sources = {
        split: [source for source, _ in pairs] for split, pairs in loaded.splits.items()
    }
    assert "A Republican strategy" in sources["validation"]
    assert "Gutach: Increased safety" in sources["test"]
    # A pair is left out where one side is empty, also in training.
    assert not {"(Applause)", ""} & set(sources["train"])


def test_directions_share_the_text_and_not_the_hash(cache, published):
    there, back = (
        load_corpus(data_of(*languages), cache).manifest
        for languages in (("en", "de"), ("de", "en"))
    )
    assert there["splits"] == back["splits"]
    assert manifest_hash(there) != manifest_hash(back)


def test_prepared_folder_is_the_same_corpus(cache, published, tmp_path):
    """As ``data.directory``, from another cache."""
    loaded = load_corpus(data_of("en", "de"), cache)
    (folder,) = cache.glob("format*/corpora/wmt14-de-en-*/wmt14_translate")
    data = data_of("en", "de", directory=str(folder.parent))
    again = load_corpus(data, tmp_path)
    assert manifest_hash(again.manifest) == manifest_hash(loaded.manifest)
    assert list(again.splits["test"]) == list(loaded.splits["test"])


@pytest.mark.parametrize("language", ["de", "fr"])
def test_archives_are_those_tfds_downloads(language, tmp_path):
    """One after the other: the server refuses several at once."""
    asked = wmt14.ARCHIVES[f"{language}-en"]
    assert sorted(asked) == sorted(set(urls_of(language, tmp_path)))
    known = checksums.get_all_url_infos()
    assert [known[url].filename for url in asked] == [x.split("/")[-1] for x in asked]


def test_splits_larger_than_memory_are_the_same_corpus(
    cache, published, tmp_path, monkeypatch
):
    """TFDS then orders them in files; some are written in several pieces."""
    monkeypatch.setattr(tfds_buckets, "_MEMORY_BYTES", 500)
    monkeypatch.setattr(tfds_buckets, "_HELD_BYTES", 150)
    monkeypatch.setattr(shuffle, "BUCKETS_NUMBER", 3)
    manual = Path("downloads", "wmt14", "manual")
    shutil.copytree(cache / manual, tmp_path / manual)
    data, used = data_of("en", "de"), []
    read_values = tfds_buckets.Bucket.read_values

    def watched(bucket):
        used.append(len(bucket))
        return read_values(bucket)

    monkeypatch.setattr(tfds_buckets.Bucket, "read_values", watched)
    loaded = load_corpus(data, tmp_path)
    assert sum(used[:3]) == 36 and len(used) % 3 == 0
    assert loaded.manifest == load_corpus(data, cache).manifest
    assert list(loaded.splits["train"]) == [p[::-1] for p in expected("de", "train")]
    assert list(tmp_path.rglob("bucket*")) == []
    assert shuffle._Bucket is not tfds_buckets.Bucket  # only while preparing


def test_bucket_gives_back_its_records(tmp_path, monkeypatch):
    monkeypatch.setattr(tfds_buckets, "_HELD_BYTES", 60)
    bucket = tfds_buckets.Bucket(tmp_path / "new" / "bucket")
    records = [(2**128 - 1, b"last"), (0, b""), (7, b"\n" * 50), (2**64, b"\x00")]
    for key, data in records:
        bucket.add(key, data)
    assert (len(bucket), bucket.size) == (4, 4 + 0 + 50 + 1)
    assert list(bucket.read_values()) == records
    bucket.del_file()
    bucket.del_file()  # nothing to remove
    assert not (tmp_path / "new" / "bucket").exists()
    assert list(tfds_buckets.Bucket(tmp_path / "none").read_values()) == []


def test_fetched_archives_give_the_same_corpus(cache, published, tmp_path, monkeypatch):
    """All of TFDS's download but the connection; what was fetched is kept."""
    asked, manual = [], cache / "downloads" / "wmt14" / "manual"

    @contextlib.contextmanager
    def serve(url, **_):
        asked.append(url)
        content = (manual / url.rpartition("/")[2]).read_bytes()
        yield types.SimpleNamespace(headers={}, url=url), [content[:99], content[99:]]

    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO())
    monkeypatch.setattr(downloader, "_open_url", serve)
    data = data_of("en", "de")
    manifest = load_corpus(data, cache).manifest
    assert load_corpus(data, tmp_path).manifest == manifest
    assert asked == list(wmt14.ARCHIVES["de-en"])
    shutil.rmtree(next(tmp_path.glob("format*")))
    assert load_corpus(data, tmp_path).manifest == manifest
    assert len(asked) == 4


def test_archive_with_another_checksum_is_refused(tmp_path):
    """The tiny ones are not the published ones."""
    write_archives(tmp_path)
    data = data_of("en", "de")
    with pytest.raises(DownloadError, match=r"europarl-v7.tgz.* has wrong checksum"):
        load_corpus(data, tmp_path)
    assert read_manifest(data, tmp_path) is None


def test_missing_archive_is_fetched_and_named_where_it_cannot_be(tmp_path):
    folder = write_archives(tmp_path)
    (folder / "training-parallel-un.tgz").unlink()
    with pytest.raises(DownloadError) as caught:
        load_corpus(data_of("en", "fr"), tmp_path)
    message = str(caught.value)
    assert "no route" in message and str(folder) in message
    assert all(name in message for name in archives())


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ({"train": 9, "validation": 3000, "test": 3003}, []),
        (
            {"train": 9, "validation": 3000, "test": 2737},
            ["test: 2,737 sentences, but newstest2014 has 3,003"],
        ),
        (
            {"train": 9, "validation": 3003},
            ["validation: 3,003 sentences, but newstest2013 has 3,000"],
        ),
    ],
)
def test_sets_of_another_length_are_told(pairs, told):
    manifest = {"splits": {split: {"pairs": n} for split, n in pairs.items()}}
    remark = "; scores are not comparable with the paper's"
    assert wmt14.unusual(manifest) == [text + remark for text in told]


def test_manifest_tells_of_sets_of_another_length(cache, published):
    """A table reads the manifest of a record and knows no corpus itself."""
    told = load_corpus(data_of("en", "de"), cache).manifest["unusual"]
    assert [text[:23] for text in told] == [
        "validation: 4 sentences",
        "test: 3 sentences, but ",
    ]


@pytest.fixture
def run(cache, published, capfd, monkeypatch, repository):
    """Runs ``prepare`` on the tiny corpus; gives exit code and stdout."""
    monkeypatch.chdir(repository)

    def run(*arguments):
        flags = ["--config=configs/table3.py:wmt14", f"--cache={cache}"]
        size = "--config.data.vocabulary_size=360"
        code = command.run(prepare.COMMAND, [*flags, size, *arguments])
        return code, capfd.readouterr().out

    return run


@pytest.mark.parametrize(("source", "target"), DIRECTIONS[:2])
def test_report_shows_the_direction_and_other_sets(run, source, target):
    """One pair, so that a reversed direction is seen."""
    languages = (
        f"--config.data.source_language={source}",
        f"--config.data.target_language={target}",
    )
    code, out = run(*languages, "--format=json")
    assert code == 0
    found = json.loads(out)
    german, english = expected("de", "train")[0]
    assert list(found["example"].items()) == [
        (name, {"de": german, "en": english}[name]) for name in (source, target)
    ]
    assert [note[:23] for note in found["notes"]] == [
        "validation: 4 sentences",
        "test: 3 sentences, but ",
    ]
    code, out = run(*languages)
    assert code == 0 and f"wmt14 1.0.0, {source} to {target}\n  {source}: " in out
    assert "4 sentences, but newstest2013 has 3,000" in out
