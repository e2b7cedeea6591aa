"""The lines below a table: what was scored, how, on what, and what it is not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.columns import (
    OUR_CHOICES,
    PAPER_COLUMNS,
    cell,
    counted,
    counts_as_the_paper,
    flatten,
    row_differences,
    setting_differences,
    word,
)
from transformer_ablation.report.consistency import vocabulary_hash
from transformer_ablation.report.record import sessions
from transformer_ablation.report.scored_text import scored_text, unusual_notes
from transformer_ablation.report.selection import Chosen, checkpoints
from transformer_ablation.report.table_row import NO_PAPER, TableRow

Record = Mapping[str, Any]
AVERAGE, AVERAGED_IN_TABLE_2 = "decode.average_checkpoints", 5  # of base: section 6.1
TIME = "training time, compiling included, times devices"
HASH_LETTERS = 12  # enough to tell hashes apart, and to find one by


def table_notes(
    sweep: Mapping[str, Any],
    rows: Sequence[TableRow],
    finished: Sequence[Record],
    chosen: Chosen,
    names: Mapping[str, str],
    rate: float | None,
    own_columns: bool = True,
) -> list[str]:
    """Every note that applies, one sentence or a few each.

    ``names`` are the table's, of ``bleu`` and ``ppl``; ``rate`` is as in Options.

    Without ``own_columns`` those are left out that speak of columns which a table of
    several sweeps has not.
    """
    notes = []
    if own_columns:
        notes.append(_reading(sweep, rows))
        notes += _perplexity(sweep, rows, chosen)
        notes += _bleu(sweep, chosen, "bleu", f"{names['bleu']} dev")
    notes += _bleu(sweep, chosen, "bleu_test", f"{names['bleu']} test")
    notes += unusual_notes(record for record, _ in chosen.values())
    if own_columns:
        notes += _parameters(sweep, rows)
    notes += _checkpoints(rows, chosen, names)
    notes += _trained_once(finished)
    if own_columns:
        notes += _seconds(rows)
    notes += _cost(rate)
    notes += _machines(finished)
    if own_columns:
        notes += _partial(rows)
    notes += _setting(sweep, rows)
    notes += _strangers(sweep, rows)
    notes += _unscored(rows, names)
    return notes + _unfinished(rows)


def _reading(sweep: Mapping[str, Any], rows: Sequence[TableRow]) -> str:
    text = "In the columns of the config a blank is equal to base"
    if not any(row.is_base for row in rows):
        base = flatten(sweep["config"])
        named = dict(PAPER_COLUMNS)
        for row in rows:
            for path in row_differences(sweep["config"], row.config):
                if path not in named.values():
                    named[path] = path
        fields = [f"{name} {cell(p, base[p])}" for name, p in named.items()]
        text += f", which has no row: {', '.join(fields)}"
    text += "; in the others it is no number."
    if any(row.is_base for row in rows):
        text += " Δ is the row minus base."
    most = max(len(m.values) for row in rows for m in (row.ppl, row.bleu))
    if most < 2:
        chance = " One seed a row: a difference may be chance."
        return text + (chance if most else " No run is finished yet.")
    means = f"Means over finished seeds, at most {most}"
    return f"{text} {means}, ± sample standard deviation (n - 1)."


def _perplexity(
    sweep: Mapping[str, Any], rows: Sequence[TableRow], chosen: Chosen
) -> list[str]:
    scored = [(r, s) for (_, _, q), (r, s) in chosen.items() if q == "ppl"]
    if not scored:
        return []
    bases = {row.name for row in rows if row.is_base}
    scored.sort(key=lambda pair: pair[0]["row"] not in bases)
    record, score = scored[0]
    pieces = record["config"]["data"]["vocabulary_size"]
    has_paper = any(row.paper != NO_PAPER for row in rows)
    paper = ", so not with the paper's" if has_paper else ""
    notes = [
        f"PPL: {scored_text(sweep, scored)}, "
        f"{counted(score['target_tokens'], 'target piece')}, per subword piece of "
        f"this vocabulary ({counted(pieces, 'piece')}, hash "
        f"{_short(vocabulary_hash(record))}), without label smoothing; not comparable "
        f"with the PPL of another vocabulary{paper}."
    ]
    other = [r.name for r in rows if not r.ppl_comparable]
    if other:
        notes.append(
            f"† PPL of another vocabulary than base's, no ΔPPL: {', '.join(other)}."
        )
    return notes


def _bleu(
    sweep: Mapping[str, Any], chosen: Chosen, quantity: str, heading: str
) -> list[str]:
    scored = [pair for (_, _, q), pair in chosen.items() if q == quantity]
    if not scored:
        return []
    scores = [score for _, score in scored]
    kind = "sacreBLEU"
    if scores[0]["metric"] == "bleu_paper":
        kind = (
            "tokenised, plain quotes and dashes, compounds split, as in the paper's "
            "Table 2; not comparable with sacreBLEU on text;"
        )
    note = (
        f"{heading}: {scored_text(sweep, scored)}; {kind} signature "
        f"{scores[0]['signature'] or 'unknown'}; {_decodings(sweep, scores)}."
    )
    cut = [s["unfinished"] for s in scores if s["unfinished"]]
    if not cut:
        return [note]
    where = f" ({len(cut)} of {len(scores)} runs)" if len(scores) > 1 else ""
    return [f"{note} {_cut(sum(cut))}{where}."]


def _cut(count: int) -> str:
    """So many hypotheses are without their end."""
    return f"{counted(count, 'hypothesis', 'hypotheses')} hit the length cap"


def _decodings(sweep: Mapping[str, Any], scores: Sequence[Mapping[str, Any]]) -> str:
    """Base's settings; a row of others has them in its columns."""
    found = dict.fromkeys(_decoding(score["decode"]) for score in scores)
    base = _decoding(sweep["config"]["decode"])
    usual = base if base in found else next(iter(found))
    return usual if len(found) == 1 else f"{usual}, but where a row's columns say other"


def _decoding(decode: Mapping[str, Any] | None) -> str:
    if not decode:
        return "decode settings unknown"
    kind = decode.get("length_penalty")
    return (
        f"beam {word(decode.get('beam_size'))}, length penalty "
        f"{f'{kind} with ' if kind else ''}alpha "
        f"{word(decode.get('length_penalty_alpha'))}, at most source + "
        f"{word(decode.get('extra_length'))} pieces"
    )


def _parameters(sweep: Mapping[str, Any], rows: Sequence[TableRow]) -> list[str]:
    """Which of the printed counts each way of counting gives, once rounded."""
    if not counts_as_the_paper(sweep["config"]):
        return []
    known = [
        (row, row.paper["parameters_millions"], row.paper_counts)
        for row in rows
        if row.paper["parameters_millions"] is not None and row.paper_counts
    ]
    if not known:
        return []

    def agree(way: str) -> list[TableRow]:
        return [row for row, printed, n in known if round(n[way] / 1e6) == printed]

    counts = ", ".join(
        f"{row.name} {n['first_code'] / 1e6:.1f} (printed {printed:.0f})"
        for row, printed, n in known
    )
    first = agree("first_code")
    missed = [row.name for row, _, _ in known if row not in first]
    return [
        "params: counted for this vocabulary. With the 40,960 + 32 embedding rows and "
        f"the projection biases of the authors' first code: {counts}. Rounded, "
        f"{len(first)} of the {len(known)} printed counts come out, and with the "
        f"text's 37,000 rows {len(agree('text'))}."
        + (f" Unexplained: {', '.join(missed)}." if missed else "")
    ]


def _checkpoints(
    rows: Sequence[TableRow], chosen: Chosen, names: Mapping[str, str]
) -> list[str]:
    """Which checkpoints were scored, and those that are not the last update's."""
    if not chosen:
        return []
    steps = {row.name: row.steps for row in rows}
    averaged, early, more = {}, {}, {}
    for (name, seed, quantity), (_, score) in chosen.items():
        run = f"{name}/seed{seed}"
        if quantity == "averaged":
            more[run] = checkpoints(score["steps"])
            if score["unfinished"]:
                more[run] += f", {_cut(score['unfinished'])}"
            continue
        if len(score["steps"]) > 1:
            averaged[run] = checkpoints(score["steps"])
        if score["steps"][-1] != steps[name]:
            early[run] = f"update {score['steps'][-1]} of {steps[name]}"
    notes = []
    if not averaged:
        notes.append("Every score is of one checkpoint, without averaging.")
    else:
        notes.append("Averaged checkpoints: " + _listed(averaged))
    if more:
        notes[-1] = notes[-1].replace("Every score is", "Every other score is")
        notes.append(
            f"{names['bleu']} averaged is of other parameters, not to be mixed with "
            f"the rest: {_listed(more)}"
        )
    if early:
        notes.append("Not scored after the last update: " + _listed(early))
    return notes


def _partial(rows: Sequence[TableRow]) -> list[str]:
    """Rows whose differences to base are over some of their seeds only."""
    base = next((row for row in rows if row.is_base), None)
    if base is None:
        return []
    over: dict[str, str] = {}
    for row in rows:
        mine, theirs = set(row.bleu.values), set(base.bleu.values)
        if mine and theirs and mine != theirs:
            shared = ", ".join(str(seed) for seed in sorted(mine & theirs))
            over[row.name] = f"seed {shared}" if shared else "none, so blank"
    if not over:
        return []
    return ["Δ is over the seeds that a row shares with base: " + _listed(over)]


def _trained_once(finished: Sequence[Record]) -> list[str]:
    """Runs that took the checkpoints of another, which differs in decoding alone."""
    of = {
        f"{r['row']}/seed{r['seed']}": f"as {r['trained_as']}"
        for r in finished
        if r.get("trained_as")
    }
    return ["Trained once, decoded in several ways: " + _listed(of)] if of else []


def _seconds(rows: Sequence[TableRow]) -> list[str]:
    if all(row.device_seconds is None for row in rows):
        return []
    return [f"train: {TIME}; the mean over finished runs."]


def _cost(rate: float | None) -> list[str]:
    if rate is None:
        return []
    return [
        f"cost: {TIME} times {rate:.3g} FLOP/s of each (the paper's rule, section "
        "6.1); means over finished runs."
    ]


def _machines(finished: Sequence[Record]) -> list[str]:
    if not finished:
        return []
    made = [each for record in finished for each in sessions(record)]
    devices = dict.fromkeys(_device(each["device"]) for each in made)
    commits = dict.fromkeys(_commit(each["commit"]) for each in made)
    version = finished[0]["results_version"]
    return [
        f"Device: {'; '.join(devices)}. Commit: {'; '.join(commits)}. "
        f"Results version {version}."
    ]


def _device(device: Mapping[str, Any] | None) -> str:
    if not device:
        return "unknown"
    return f"{word(device.get('count'))} x {word(device.get('kind'))}"


def _commit(commit: Mapping[str, Any] | None) -> str:
    if not commit:
        return "unknown"
    changed = " with uncommitted changes" if commit.get("dirty") else ""
    return f"{_short(commit.get('hash'))}{changed}"


def _setting(sweep: Mapping[str, Any], rows: Sequence[TableRow]) -> list[str]:
    """Says that numbers are no reproduction, where base is not the paper's."""
    differing = setting_differences(sweep["config"])
    if any(row.paper["bleu_test"] is not None for row in rows):
        _, here = differing.get(AVERAGE, (None, None))
        if here == AVERAGED_IN_TABLE_2:
            del differing[AVERAGE]
    if not differing or all(row.paper == NO_PAPER for row in rows):
        return []
    listed = ", ".join(
        f"{path} {word(here)} "
        f"({'base.py' if path in OUR_CHOICES else 'paper'}: {word(there)})"
        for path, (there, here) in differing.items()
    )
    return [
        "Trend, not reproduction: compare the signs and the order of the differences "
        f"with the paper's, not the values. Base here is not the paper's: {listed}."
    ]


def _strangers(sweep: Mapping[str, Any], rows: Iterable[TableRow]) -> list[str]:
    known = {row["name"] for row in sweep["rows"]}
    names = [row.name for row in rows if row.name not in known]
    return [f"Not in sweep.json, from records only: {', '.join(names)}."] * bool(names)


def _unscored(rows: Iterable[TableRow], names: Mapping[str, str]) -> list[str]:
    missing = [
        f"{row.name}/seed{run.seed} ({what})"
        for row in rows
        for run in row.runs
        for what, measure in ((names["ppl"], row.ppl), (names["bleu"], row.bleu))
        if run.state == "finished" and run.seed not in measure.values
    ]
    return [f"Finished without a score: {', '.join(missing)}."] * bool(missing)


def _unfinished(rows: Iterable[TableRow]) -> list[str]:
    """One note a run without numbers that has begun; pending ones are counted."""
    notes, pending = [], 0
    for row in rows:
        for run in row.runs:
            pending += run.state == "pending"
            if run.state not in ("finished", "pending"):
                where = "" if run.step is None else f" at update {run.step}"
                why = f": {run.reason}" if run.reason else ""
                notes.append(f"{row.name}/seed{run.seed} {run.state}{where}{why}")
    if pending:
        notes.append(f"Not started: {counted(pending, 'run')}.")
    return notes


def _short(digest: str | None) -> str:
    return digest[:HASH_LETTERS] if digest else "unknown"


def _listed(things: Mapping[str, str]) -> str:
    """``run, run: value; run: other value``."""
    holders: dict[str, list[str]] = {}
    for name, value in things.items():
        holders.setdefault(value, []).append(name)
    return "; ".join(f"{', '.join(ns)}: {value}" for value, ns in holders.items()) + "."
