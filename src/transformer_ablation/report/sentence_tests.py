"""Whether two trained models differ on the sentences of a split: sacreBLEU's own tests.

Paired bootstrap resampling (Koehn 2004) and paired approximate randomisation (Riezler
and Maxwell 2005) of a row's hypotheses against base's of the same seed. A p speaks of
these two models, not of the change that made them: another seed gives other models.

What was found is kept in ``WORKDIR/significance.json`` under a hash of all that went
into it, each result as soon as it is there.
"""

import concurrent.futures
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation import process
from transformer_ablation.report.json_file import (
    RecordError,
    locked,
    read_json,
    write_json,
)
from transformer_ablation.report.record import run_directory
from transformer_ablation.report.selection import Chosen
from transformer_ablation.report.text_metrics import metric_of
from transformer_ablation.report.translations import (
    hypothesis_files,
    normal_form_mismatches,
    read_lines,
    reference_file,
)

CACHE_FILE = "significance.json"
KINDS = {"bootstrap": "bs", "randomization": "ar"}  # sacreBLEU's names
SAMPLES = {"bootstrap": 1000, "randomization": 10_000}  # and its defaults
SEED = 12345
FEW = 4  # tests that are not worth starting processes for


class Settings(NamedTuple):
    """Which tests, with how many samples (None: ``SAMPLES``), from which seed."""

    kinds: tuple[str, ...] = tuple(KINDS)
    samples: int | None = None
    seed: int = SEED

    def samples_of(self, kind: str) -> int:
        """Resamples of the bootstrap, or trials of the randomisation."""
        return self.samples or SAMPLES[kind]


class SentenceTest(NamedTuple):
    """One test of one seed; ``signature`` is sacreBLEU's, with seed and samples."""

    p: float
    signature: str
    adjusted: float | None = None


class Sentences(NamedTuple):
    """``tests[row][seed][kind]``; what the texts hold; why some were not tested."""

    tests: Mapping[str, Mapping[int, Mapping[str, SentenceTest]]]
    mismatches: Mapping[str, int]  # by run: sentences with words in two normal forms
    untested: Mapping[str, str]  # by run


class Text(NamedTuple):
    """The hypotheses that gave a run's BLEU, and their references."""

    hypotheses: Path
    references: Path
    digests: tuple[str, str]
    mismatches: int
    signature: str | None


Progress = Callable[[str], None]
Task = tuple[str, Settings, Text, Text, str]  # arguments of compute
NOTHING = Sentences({}, {}, {})


class Cache:
    """Results by key, in a file of the workdir, or in memory where it is read-only."""

    def __init__(self, workdir: Path, progress: Progress):
        self._path, self._progress = workdir / CACHE_FILE, progress
        self._entries = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            return dict(read_json(self._path) or {})
        except (RecordError, OSError):
            return {}  # whatever it held can be computed again

    def get(self, key: str) -> Any:
        """What is stored, or None."""
        return self._entries.get(key)

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Stores a result; others may store theirs at the same time."""
        self._entries[key] = dict(value)
        try:
            with locked(self._path):
                self._entries = {**self._read(), **self._entries}
                write_json(self._path, self._entries)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self._progress(f"{self._path}: not kept for the next call ({why})")


def sentence_tests(
    workdir: Path,
    chosen: Chosen,
    base: str,
    settings: Settings,
    progress: Progress = lambda text: None,
) -> Sentences:
    """Tests of every row and seed whose texts are there, against base's of that seed.

    Args:
      chosen: what the table shows; its ``bleu`` must be sacreBLEU's.
      base: the name of base's row.
      progress: hears a line before and during whatever takes long.
    """
    cache = Cache(workdir, progress)
    texts, untested = {}, {}
    runs = [(row, seed) for row, seed, quantity in chosen if quantity == "bleu"]
    for row, seed in runs:
        run = run_directory(workdir, row, seed)
        found = find_text(run, chosen[row, seed, "bleu"][1], cache)
        if isinstance(found, Text):
            texts[row, seed] = found
        else:
            untested[f"{row}/seed{seed}"] = found
    tasks: dict[tuple[str, int, str], Task] = {}
    for (row, seed), text in texts.items():
        other = texts.get((base, seed))
        if row == base or other is None:
            continue
        if text.digests[1] != other.digests[1]:
            untested[f"{row}/seed{seed}"] = "other references than base's"
            continue
        for kind in settings.kinds:
            tasks[row, seed, kind] = (kind, settings, other, text, "bleu")
    tests: dict[str, dict[int, dict[str, SentenceTest]]] = {}
    for (row, seed, kind), test in run_tests(tasks, cache, progress).items():
        tests.setdefault(row, {}).setdefault(seed, {})[kind] = test
    mismatches = {f"{r}/seed{s}": t.mismatches for (r, s), t in texts.items()}
    return Sentences(tests, {run: n for run, n in mismatches.items() if n}, untested)


def find_text(run: Path, score: Mapping[str, Any], cache: Cache) -> Text | str:
    """The texts in a run's folder behind a BLEU of its record, or why there are none.

    Hypotheses are those of the score only if they give its BLEU against the
    references; a file that was replaced since is not tested in its name.
    """
    references = reference_file(run, score["split"])
    files = hypothesis_files(run, score["split"])
    if not references.is_file() or not files:
        return "no stored " + ("translations" if references.is_file() else "references")
    theirs, signature = _digest(references), score["signature"]
    for path in files:
        digests = (_digest(path), theirs)
        key = key_of("text", signature, *digests)
        known = cache.get(key)
        if known is None:
            known = _measured(path, references, signature)
            cache.put(key, known)
        if known["bleu"] is not None and abs(known["bleu"] - score["value"]) < 1e-6:
            return Text(path, references, digests, known["mismatches"], signature)
    return "stale translations: they do not give the recorded BLEU"


def _measured(
    hypotheses: Path, references: Path, signature: str | None
) -> dict[str, Any]:
    """BLEU of a file and its words in another normal form; None where lines differ."""
    ours, theirs = read_lines(hypotheses), read_lines(references)
    if len(ours) != len(theirs) or not ours:
        return {"bleu": None, "mismatches": 0}
    with quiet():
        bleu = metric_of("bleu", signature).corpus_score(ours, [theirs]).score
    return {"bleu": bleu, "mismatches": normal_form_mismatches(ours, theirs)}


def run_tests(
    tasks: Mapping[Any, Task], cache: Cache, progress: Progress, few: int = FEW
) -> dict[Any, SentenceTest]:
    """A test a task, under the task's name: the cache's, or made now and put there."""
    keys = {name: _task_key(*task) for name, task in tasks.items()}
    missing = [name for name in tasks if cache.get(keys[name]) is None]
    if missing:
        progress(f"testing sentences: {len(missing)} tests, kept for the next call")
    jobs = [functools.partial(compute, *tasks[name]) for name in missing]
    for done, (place, result) in enumerate(computed(jobs, few), 1):
        cache.put(keys[missing[place]], result)
        if done % 20 == 0 and done < len(missing):
            progress(f"testing sentences: {done} of {len(missing)} done")
    found = {name: cache.get(keys[name]) for name in tasks}
    return {name: SentenceTest(x["p"], x["signature"]) for name, x in found.items()}


def computed(jobs: Sequence[Callable[[], Any]], few: int) -> Iterator[tuple[int, Any]]:
    """(place, result) of each job as it is done; more than ``few`` use every core."""
    workers = min(len(process.cores()), len(jobs))
    if len(jobs) <= few or workers < 2:
        yield from ((place, job()) for place, job in enumerate(jobs))
        return
    with concurrent.futures.ProcessPoolExecutor(
        workers,
        multiprocessing.get_context("spawn"),  # JAX's threads do not bear a fork
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        futures = {pool.submit(job): place for place, job in enumerate(jobs)}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def compute(
    kind: str, settings: Settings, base: Text, row: Text, metric: str = "bleu"
) -> dict[str, Any]:
    """One test by sacreBLEU of a metric (``text_metrics``): its p and signature.

    The p is never below ``least_p``: sacreBLEU counts the samples with a larger
    difference, so that equal texts, where none is larger, would be called different.
    """
    from sacrebleu.significance import PairedTest

    named = (("base", base), ("row", row))
    systems = [(name, read_lines(text.hypotheses)) for name, text in named]
    with quiet(), _sacrebleu_seed(settings.seed):
        test = PairedTest(
            systems,
            {metric: metric_of(metric, row.signature)},
            [read_lines(row.references)],
            test_type=KINDS[kind],
            n_samples=settings.samples_of(kind),
        )
        signatures, scores = test()
    ((name, found),) = signatures.items()
    least = least_p(systems[0][1], systems[1][1])
    return {"p": max(scores[name][1].p_value, least), "signature": str(found)}


def least_p(base: Sequence[str], row: Sequence[str]) -> float:
    """The least that texts which differ in so many sentences can have.

    Equal texts have 1. Of the 2^k ways to swap k sentences that differ, two, none and
    all, give the difference that was found. Between models that are alike every way is
    as likely, so a two-sided test of either kind that gave less would be wrong more
    often than it says. The bootstrap, exact only for many sentences, does.
    """
    differing = sum(a != b for a, b in zip(base, row, strict=True))
    return min(1.0, 2.0 ** (1 - differing))


@contextlib.contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacreBLEU reads its seed from the environment alone."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without sacreBLEU's advice on input: ours is the text as it is."""
    logger = logging.getLogger("sacrebleu")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _task_key(kind: str, settings: Settings, base: Text, row: Text, metric: str) -> str:
    """Two texts are tested as well the other way round: both tests are two-sided."""
    pair = sorted((base.digests[0], row.digests[0]))
    # "least p of both" keeps out what was stored before each kind had one.
    samples = settings.samples_of(kind)
    how = ("least p of both", kind, metric, row.signature, samples, settings.seed)
    return key_of(*how, *pair, row.digests[1])


def key_of(*parts: Any) -> str:
    """A key of the cache: a hash of the parts and of sacreBLEU's version."""
    return hashlib.sha256(json.dumps([_version(), *parts]).encode()).hexdigest()


@functools.cache
def _version() -> str:
    return importlib.metadata.version("sacrebleu")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
