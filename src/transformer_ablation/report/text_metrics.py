"""sacreBLEU's metrics, BLEU as the signature of a recorded score describes it."""

from typing import Any

from transformer_ablation.report.json_file import RecordError

METRICS = ("bleu", "chrf", "ter")
DEFAULT = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
# Tokenisers of languages without spaces, whose letters TER has to count singly.
SPACELESS = ("zh", "ja-mecab", "char")


def metric_of(name: str, signature: str | None, **changes: Any) -> Any:
    """A metric of ``sacrebleu.metrics``: one of ``METRICS``.

    BLEU scores as the signature says; its version is not looked at: what another one
    would score otherwise, the recorded value shows. chrF and TER have sacreBLEU's
    defaults, except that TER parts the letters of languages without spaces. ``changes``
    are other arguments of the metric.

    Raises:
      RecordError: for what is no signature, or a tokeniser that is not installed.
    """
    from sacrebleu.metrics import CHRF, TER

    if name == "bleu":
        return _bleu(signature, changes)
    if name == "chrf":
        return CHRF(**changes)
    spaceless = tokeniser_of(signature) in SPACELESS
    return TER(normalized=spaceless, asian_support=spaceless, **changes)


def tokens_of(bleu: Any, line: str) -> list[str]:
    """The words of a line as BLEU counts them."""
    text = line.lower() if bleu.lowercase else line
    return bleu.tokenizer(text.rstrip()).split()


def tokeniser_of(signature: str | None) -> str:
    """sacreBLEU's name of it: some add their dictionary's to it in the signature."""
    from sacrebleu.metrics import BLEU

    name = _fields(signature)["tok"]
    known = [n for n in BLEU.TOKENIZERS if name == n or name.startswith(f"{n}-")]
    if not known:
        raise RecordError(
            f"BLEU was scored with the tokeniser {name} ({signature}), which this "
            f"sacreBLEU does not have; it has {', '.join(BLEU.TOKENIZERS)}"
        )
    return max(known, key=len)


def _bleu(signature: str | None, changes: dict[str, Any]) -> Any:
    from sacrebleu.metrics import BLEU

    fields, name = _fields(signature), tokeniser_of(signature)
    method, _, value = fields["smooth"].partition("[")
    if method not in BLEU.SMOOTH_DEFAULTS:
        raise _no_signature(signature)
    arguments = {
        "lowercase": fields["case"] == "lc",
        "tokenize": name,
        "smooth_method": method,
        "smooth_value": float(value.removesuffix("]")) if value else None,
        "effective_order": fields["eff"] == "yes",
    }
    try:
        return BLEU(**{**arguments, **changes})
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        why = " ".join(str(error).split())
        raise RecordError(
            f"BLEU was scored with the tokeniser {name} ({signature}), which cannot be "
            f"used here: {why}"
        ) from None


def _fields(signature: str | None) -> dict[str, str]:
    parts = (signature or DEFAULT).split("|")
    fields = {k: v for k, colon, v in (p.partition(":") for p in parts) if colon}
    needed = ("case", "eff", "tok", "smooth")
    if not all(name in fields for name in needed) or fields.get("nrefs") != "1":
        raise _no_signature(signature)
    return fields


def _no_signature(signature: str | None) -> RecordError:
    return RecordError(
        f"{signature!r} is no signature of sacreBLEU with one reference; score the run "
        "again with python -m experiments.evaluate"
    )
