"""What ``experiments.bench`` found, for people."""

from collections.abc import Mapping
from typing import Any

from transformer_ablation.sweep.plan import counted, size

SIDES = ("source", "target")
ADVICE = "In brackets: quartiles. Other work on the machine moves them, and medians."


def as_text(found: Mapping[str, Any]) -> str:
    """Machine, then every row."""
    device, machine, packages = (found[k] for k in ("device", "machine", "packages"))
    versions = " ".join(f"{name} {packages[name]}" for name in ("python", "jax"))
    chosen = [f"{k}={v}" for k, v in found["environment"].items() if v is not None]
    lines = [
        f"{found['date']}: {counted(device['count'], device['platform'] + ' device')}, "
        f"{counted(machine['cores'], 'core')} of {machine['processor']}, {versions}, "
        f"load {machine['load'][0]:.1f} at the start",
        f"environment: {' '.join(chosen) or 'nothing that matters is set'}",
    ]
    for row in found["rows"]:
        lines += ["", *row_lines(row)]
    return "\n".join([*lines, "", ADVICE, f"{found['seconds']:.0f} seconds in all"])


def row_lines(row: Mapping[str, Any]) -> list[str]:
    """Everything about a row."""
    dtype, total = row["config"]["model"]["dtype"], row["parameters"]["total"]
    loop, decode, dropout = row["loop"], row["decode"], row["dropout"]
    compiled = [
        f"{p['program']} {p['seconds']:.1f}" for p in row["compile"]["programs"]
    ]
    training, decoding = row["memory_bytes"].values()
    facts = {
        "the loop": f"{loop['target_tokens_per_second']:,.0f} target tokens/s; "
        f"{loop['wait_share']:.1%} of the time spent waiting for batches",
        "dropout": f"an update with it over one without: "
        f"{_spread(dropout['ratio'], 1, '.3f')}",
        "compiling": f"seconds, nothing from the cache: {', '.join(compiled)}",
        "ceiling": _products(row),
        "beam search": f"{decode['sentences_per_second']:,.1f} sentences/s with a beam "
        f"of {decode['beam_size']}, each as long as its reference",
        "scoring": f"{row['score']['sentences_per_second']:,.1f} sentences/s",
        "memory": f"at most {_size(training)} in training, {_size(decoding)} in all",
        **_peers(row["peers"]),
    }
    return [
        f"{row['row']}: {total:,} parameters, {dtype}, {row['identity'][:16]}",
        *_updates(row),
        *(f"{name:<12} {text}" for name, text in facts.items()),
    ]


def _updates(row: Mapping[str, Any]) -> list[str]:
    """A table: a line for each shape of batches, and one for an epoch of them."""
    head = "batches|of epoch|ms an update|source tok/s|target tok/s|GFLOP/s|of ceiling"
    cells = [head.split("|")]
    for each in row["updates"]:
        name = f"{each['rows']}x{each['source_length']}x{each['target_length']}"
        share = each["updates_per_epoch"] / row["updates_per_epoch"]
        time = _spread(each["seconds"], 1e3, ",.1f")
        cells.append([name, f"{share:.0%}", time, *_rates(each)])
    if len(row["updates"]) > 1:
        mean = row["epoch"]["seconds"] / row["updates_per_epoch"]
        cells.append(["all", "100%", f"{1e3 * mean:,.1f}", *_rates(row["epoch"])])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]


def _rates(each: Mapping[str, Any]) -> list[str]:
    tokens = [f"{each[f'{side}_tokens_per_second']:,.0f}" for side in SIDES]
    flops, share = each["flops_per_second"] / 1e9, each["share_of_ceiling"]
    return [*tokens, f"{flops:,.1f}", f"{share:.0%}"]


def _products(row: Mapping[str, Any]) -> str:
    each = [
        f"{p['tokens']}x{p['inner']}x{p['outer']} {p['flops_per_second'] / 1e9:,.0f}"
        for p in row["products"]
    ]
    best = row["ceiling_flops_per_second"] / 1e9
    return f"{best:,.0f} GFLOP/s, the fastest product of {', '.join(each)}"


def _peers(peers: Mapping[str, Any] | None) -> dict[str, str]:
    """A line for training and one for beam search, where they were compared."""
    if peers is None:
        return {}
    name = f"Marian (torch {peers['torch']}, {peers['threads']} threads)"
    lines = {
        "peer": f"{name}, {peers['parameters']:,} parameters"
        + "".join(f"; {each}" for each in peers["differences"])
    }
    for part, unit in (("training", "target tokens/s"), ("decode", "sentences/s")):
        found = peers[part]
        ours, theirs, ratio = found["ours"], found["theirs"], found["ratio"]
        lines[f"  {part}"] = (
            f"{ours['median']:,.1f} {unit} here, {theirs['median']:,.1f} there: "
            f"{ratio['median']:.2f} times ({ratio['smallest']:.2f} to "
            f"{ratio['largest']:.2f} in {ratio['count']} turns)"
        )
    return lines


def _spread(spread: Mapping[str, float], factor: float, form: str) -> str:
    """Median and quartiles."""
    names = ("median", "low", "high")
    middle, low, high = (format(factor * spread[name], form) for name in names)
    return f"{middle} ({low}-{high})"


def _size(count: int | None) -> str:
    return "an unknown size" if count is None else size(count)
