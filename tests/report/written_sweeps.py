"""Sweeps and records written by hand, as a workdir would hold them."""

import copy
from typing import Any

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
MANIFEST = "ab" * 32
VOCABULARY = "cd" * 32

BASE: dict[str, dict[str, Any]] = {
    "model": {
        "architecture": "transformer",
        "num_layers": 6,
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "d_k": 64,
        "d_v": 64,
        "positions": "sinusoidal",
        "norm": "post",
        "attention_window": None,
        "scale_embeddings": True,
    },
    "regularization": {"dropout_rate": 0.1, "label_smoothing": 0.1},
    "optimizer": {"warmup_steps": 4000},
    "data": {
        "corpus": "wmt14",
        "directory": None,
        "source_language": "en",
        "target_language": "de",
        "validation_split": "validation",
        "test_split": "test",
        "vocabulary_size": 37_000,
        "filter_copies": False,
        "tokens_per_batch": 25_000,
    },
    "train": {"steps": 100_000, "seed": 0},
    "decode": {
        "beam_size": 4,
        "length_penalty": "wu2016",
        "length_penalty_alpha": 0.6,
        "extra_length": 50,
        "average_checkpoints": 1,
    },
}

SYMBOLS = {
    "N": "model.num_layers",
    "d_model": "model.d_model",
    "d_ff": "model.d_ff",
    "h": "model.num_heads",
    "d_k": "model.d_k",
    "d_v": "model.d_v",
    "p_drop": "regularization.dropout_rate",
    "eps_ls": "regularization.label_smoothing",
    "steps": "train.steps",
    "positions": "model.positions",
}

# Table 3 of the paper: name, group, printed cells that differ from base, dev PPL,
# dev BLEU, millions of parameters.
PAPER = [
    ("base", "base", {}, 4.92, 25.8, 65),
    ("A_h1", "A", {"h": 1, "d_k": 512, "d_v": 512}, 5.29, 24.9, None),
    ("A_h4", "A", {"h": 4, "d_k": 128, "d_v": 128}, 5.0, 25.5, None),
    ("A_h16", "A", {"h": 16, "d_k": 32, "d_v": 32}, 4.91, 25.8, None),
    ("A_h32", "A", {"h": 32, "d_k": 16, "d_v": 16}, 5.01, 25.4, None),
    ("B_dk16", "B", {"d_k": 16}, 5.16, 25.1, 58),
    ("B_dk32", "B", {"d_k": 32}, 5.01, 25.4, 60),
    ("C_N2", "C", {"N": 2}, 6.11, 23.7, 36),
    ("C_N4", "C", {"N": 4}, 5.19, 25.3, 50),
    ("C_N8", "C", {"N": 8}, 4.88, 25.5, 80),
    ("C_d256", "C", {"d_model": 256, "d_k": 32, "d_v": 32}, 5.75, 24.5, 28),
    ("C_d1024", "C", {"d_model": 1024, "d_k": 128, "d_v": 128}, 4.66, 26.0, 168),
    ("C_ff1024", "C", {"d_ff": 1024}, 5.12, 25.4, 53),
    ("C_ff4096", "C", {"d_ff": 4096}, 4.75, 26.2, 90),
    ("D_drop0.0", "D", {"p_drop": 0.0}, 5.77, 24.6, None),
    ("D_drop0.2", "D", {"p_drop": 0.2}, 4.95, 25.5, None),
    ("D_ls0.0", "D", {"eps_ls": 0.0}, 4.67, 25.3, None),
    ("D_ls0.2", "D", {"eps_ls": 0.2}, 5.47, 25.7, None),
    ("E_learned_pos", "E", {"positions": "learned"}, 4.92, 25.7, None),
    (
        "big",
        "big",
        {"d_model": 1024, "d_ff": 4096, "h": 16, "p_drop": 0.3, "steps": 300_000},
        4.33,
        26.4,
        213,
    ),
]


def config_with(changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """BASE with ``{"section.field": value}`` changed."""
    config = copy.deepcopy(BASE)
    for path, value in changes.items():
        section, _, field = path.partition(".")
        config[section][field] = value
    return config


def sweep_row(name, changes, group="", paper=None) -> dict[str, Any]:
    return {
        "name": name,
        "group": group,
        "label": f"label of {name}",
        "changes": changes,
        "paper": paper,
        "config": config_with(changes),
    }


def sweep(rows, seeds=(0,), title="a sweep") -> dict[str, Any]:
    return {
        "results_version": 1,
        "title": title,
        "config": copy.deepcopy(BASE),
        "rows": rows,
        "seeds": list(seeds),
        "packages": {"jax": "0.10.2"},
    }


def paper_rows(names=None) -> list[dict[str, Any]]:
    """Rows of Table 3 with the paper's numbers; all twenty, or those named."""
    return [
        sweep_row(
            name,
            {SYMBOLS[s]: v for s, v in cells.items()},
            group,
            {"ppl": ppl, "bleu": bleu, "parameters_millions": millions},
        )
        for name, group, cells, ppl, bleu, millions in PAPER
        if names is None or name in names
    ]


def ppl_score(value, steps=(100_000,), split="validation") -> dict[str, Any]:
    return {
        "split": split,
        "metric": "ppl",
        "value": value,
        "sentences": 3000,
        "target_tokens": 81_234,
        "steps": list(steps),
        "decode": None,
        "signature": None,
        "unfinished": None,
    }


def bleu_score(value, steps=(100_000,), split="validation", **decode) -> dict:
    settings = {
        "beam_size": 4,
        "length_penalty": "wu2016",
        "length_penalty_alpha": 0.6,
        "extra_length": 50,
    }
    return {
        "split": split,
        "metric": "bleu",
        "value": value,
        "sentences": 3000,
        "target_tokens": None,
        "steps": list(steps),
        "decode": {**settings, **decode},
        "signature": SIGNATURE,
        "unfinished": 0,
    }


def paper_bleu_score(*given) -> dict:
    """As ``bleu_score``, counted the paper's way."""
    counted = {"metric": "bleu_paper", "signature": "moses-de|tok:none"}
    return bleu_score(*given) | counted


def record(row, seed=0, status="finished", scores=(), **keys) -> dict[str, Any]:
    """A record of a row of a sweep, complete by the schema of the run directory."""
    config = copy.deepcopy(row["config"])
    config["train"]["seed"] = seed
    return {
        "results_version": 1,
        "row": row["name"],
        "group": row["group"],
        "label": row["label"],
        "seed": seed,
        "status": status,
        "reason": None,
        "identity": "ef" * 32,
        "config": config,
        "command": ["python", "-m", "experiments.sweep"],
        "commit": {"hash": "0123456789abcdef0123", "dirty": False},
        "packages": {"jax": "0.10.2"},
        "device": {"kind": "cpu", "count": 1, "platform": "cpu"},
        "process": {"host": "elsewhere", "pid": 7},
        "parameters": {"total": 65_126_400, "embedding": 20_987_904},
        "flops": {"per_step": 10, "training": 1_000_000},
        "data": {
            "manifest": {"corpus": "wmt14"},
            "manifest_hash": MANIFEST,
            "vocabulary_hash": VOCABULARY,
            "filters": {"too_long": 3},
        },
        "step": config["train"]["steps"],
        "seconds": {"compile": 20.0, "train": 100.0, "evaluate": 30.0},
        "tokens": {"source": 1000, "target": 1100, "real": 1050},
        "tokens_per_second": 4200.0,
        "scores": list(scores),
        **keys,
    }


def scored(row, ppl, bleu, seed=0, **keys) -> dict[str, Any]:
    """A finished record with dev PPL and dev BLEU of its last update."""
    steps = (row["config"]["train"]["steps"],)
    return record(
        row, seed, scores=[ppl_score(ppl, steps), bleu_score(bleu, steps)], **keys
    )
