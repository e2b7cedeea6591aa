"""A corpus of sixty sentences, a sweep of tiny models on it, and its finished runs."""

import functools
import gzip
import os
import random
import subprocess
import sys

import numpy as np

from transformer_ablation.config import from_mapping
from transformer_ablation.report.json_file import read_json
from transformer_ablation.report.metrics import read_metrics
from transformer_ablation.train.checkpoint import Checkpoints
from transformer_ablation.vocabulary import Vocabulary

ROWS = ("base", "smooth", "narrow")
COUNTS = {"train": 60, "val": 7, "test_2016_flickr": 5}
# name -> (English, German): Zipfian enough for BPE, nothing like real text.
WORDS = tuple(
    pair.split("/")
    for pair in "man/mann dog/hund red/rot old/alt house/haus runs/rennt sees/sieht "
    "small/klein ball/ball street/strasse girl/mädchen plays/spielt".split()
)

# Sizes are pairwise different. Of the rows after narrow, wild diverges and short has
# too few positions for the longest translation; stuck and late are sound.
SWEEP = """
from configs import base as base_model
from transformer_ablation.sweep.rows import BASE, PaperResult, Row

TITLE = "Tiny"
FIELDS = {
    "model": dict(num_layers=1, d_model=12, d_ff=20, num_heads=2, d_k=7, d_v=5),
    "regularization": dict(dropout_rate=0.03),
    "optimizer": dict(warmup_steps=3, learning_rate_scale=0.5),
    "data": dict(
        corpus="multi30k", test_split="test_2016_flickr", vocabulary_size=360,
        max_train_length=30, length_buckets=1, tokens_per_batch=256,
    ),
    "train": dict(
        steps=150, evaluate_every_steps=75, checkpoint_every_steps=50,
        keep_checkpoints=2, log_every_steps=1, sample_sentences=0,
    ),
    "decode": dict(
        beam_size=3, extra_length=9, sentences_per_batch=8, length_penalty_alpha=1.0,
    ),
}


def get_config():
    config = base_model.get_config()
    for section, fields in FIELDS.items():
        config[section].update(fields)
    return config


def get_rows():
    return [
        Row("base", "base", "base", lambda b: {}, PaperResult(4.92, 25.8, 65)),
        Row("smooth", "D", "no smoothing", lambda b: {
            "regularization.label_smoothing": 0.0}),
        Row("narrow", "C", "d_ff", lambda b: {"model.d_ff": 14}),
        Row("wild", "X", "rate", lambda b: {"optimizer.learning_rate_scale": 1e30}),
        Row("short", "X", "positions", lambda b: {
            "model.positions": "learned", "model.max_length": 64,
            "decode.extra_length": 63}),
        Row("stuck", "D", "dropout", lambda b: {"regularization.dropout_rate": 0.1}),
        Row("greedy", "X", "beam 1", lambda b: {"decode.beam_size": 1}),
        Row("late", "D", "dropout", lambda b: {"regularization.dropout_rate": 0.2}),
    ]
"""


def sentences(count, seed):
    """Pairs of three to seven words."""
    choose = random.Random(seed)
    for _ in range(count):
        words = [choose.choice(WORDS) for _ in range(choose.randint(3, 7))]
        yield [" ".join(side) for side in zip(*words, strict=True)]


def write_corpus(folder):
    """The files of Multi30k, some of them gzipped."""
    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate(COUNTS.items()):
        pairs = list(sentences(count, seed))
        for language, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            content = "".join(f"{line}\n" for line in lines).encode()
            if language == "de" and name != "val":
                (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / f"{name}.{language}").write_bytes(content)


def folder_of(factory):
    """Corpus, sweep file and cache, once for all tests of a session."""
    folder = factory.getbasetemp() / "tiny"
    if not folder.exists():
        write_corpus(folder / "corpus")
        (folder / "tiny.py").write_text(SWEEP)
    return folder


def arguments(folder, workdir, *more):
    """The command line of the sweep in a workdir."""
    return [
        f"--config={folder / 'tiny.py'}",
        f"--config.data.directory={folder / 'corpus'}",
        f"--workdir={workdir}",
        f"--cache={folder / 'cache'}",
        *more,
    ]


# One device and quick compiling: these tests compare runs with each other.
ENVIRONMENT = {
    "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
}


def process(name, given, *, before="", **kwargs):
    """``python -m experiments.NAME`` as a process; ``before`` is run in it first."""
    start = f"from experiments import command, {name}\n"
    start += f"command.main({name}.COMMAND)\n"
    command = ["-c", before + start] if before else ["-m", f"experiments.{name}"]
    return subprocess.run(
        [sys.executable, *command, *map(str, given)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        timeout=300,
        **kwargs,
    )


@functools.cache
def straight(folder):
    """The workdir of the three rows, run without a pause; nobody writes there."""
    workdir = folder / "straight"
    rows = f"--rows={','.join(ROWS)}"
    done = process("sweep", arguments(folder, workdir, rows))
    assert done.returncode == 0, done.stderr.decode()
    return workdir


def values(run):
    """``{(step, tag): value}`` of a run's metrics; tags of speed are left out."""
    entries = read_metrics(run)
    keys = [(e["step"], e["tag"]) for e in entries]
    assert len(keys) == len(set(keys)), "a value stands there twice"
    found = {k: e["value"] for k, e in zip(keys, entries, strict=True)}
    timed = ("_per_second", "_seconds")
    return {k: v for k, v in found.items() if not k[1].endswith(timed)}


def checkpoint(run, step=None):
    """``{path: bytes}`` of every array of a checkpoint, the newest by default."""
    import jax

    from transformer_ablation.runs.building import build_model
    from transformer_ablation.train.step import state_shapes

    config = from_mapping(read_json(run / "config.json"))
    vocabulary = Vocabulary.load(run / "vocabulary.model")
    saved = Checkpoints(run / "checkpoints", config, vocabulary.content_hash)
    shapes = state_shapes(build_model(config, vocabulary.size), config)
    state = saved.restore(shapes, step)
    saved.close()
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    return {jax.tree_util.keystr(k): np.asarray(v).tobytes() for k, v in leaves}


def stamps(run):
    """Times of change and contents of the files of a run that stay when it is done."""
    files = [run / "record.json", *(run / "checkpoints").rglob("*")]
    found = {p: p for p in files + [run / "metrics.jsonl"] if p.is_file()}
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in found}


def saved_steps(run):
    """Numbers of the complete checkpoints of a run, from the names of the folders."""
    folder = run / "checkpoints"
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def last_step(run):
    """The last update with a loss in the metrics."""
    return max(e["step"] for e in read_metrics(run) if e["tag"] == "train/loss")
