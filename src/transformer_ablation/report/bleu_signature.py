"""sacreBLEU's metric as the signature of a recorded score describes it."""

from typing import Any

from transformer_ablation.report.json_file import RecordError

DEFAULT = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"


def bleu_of(signature: str | None, **changes: Any) -> Any:
    """A ``sacrebleu.metrics.BLEU`` that scores as the signature says.

    The version in it is not looked at: what another one would score otherwise, the
    recorded value shows. ``changes`` are other arguments of the metric.

    Raises:
      RecordError: for what is no signature, or a tokeniser that is not installed.
    """
    from sacrebleu.metrics import BLEU

    fields = _fields(signature or DEFAULT)
    method, _, value = fields["smooth"].partition("[")
    name = _tokeniser(fields["tok"], signature)
    arguments = {
        "lowercase": fields["case"] == "lc",
        "tokenize": name,
        "smooth_method": method,
        "smooth_value": float(value.removesuffix("]")) if value else None,
        "effective_order": fields["eff"] == "yes",
        **changes,
    }
    try:
        return BLEU(**arguments)
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        why = " ".join(str(error).split())
        raise RecordError(
            f"BLEU was scored with the tokeniser {name} ({signature}), which cannot be "
            f"used here: {why}"
        ) from None


def tokens_of(metric: Any, line: str) -> list[str]:
    """The words of a line as BLEU counts them."""
    text = line.lower() if metric.lowercase else line
    return metric.tokenizer(text.rstrip()).split()


def _fields(signature: str) -> dict[str, str]:
    fields = dict(part.partition(":")[::2] for part in signature.split("|"))
    missing = [n for n in ("case", "eff", "tok", "smooth") if n not in fields]
    if missing or fields.get("nrefs") != "1":
        raise RecordError(
            f"{signature!r} is no sacreBLEU signature of scores with one reference; "
            "score the run again with python -m experiments.evaluate"
        )
    return fields


def _tokeniser(name: str, signature: str | None) -> str:
    """sacreBLEU's name of it: those with a dictionary add that to their signature."""
    from sacrebleu.metrics import BLEU

    known = [n for n in BLEU.TOKENIZERS if name == n or name.startswith(f"{n}-")]
    if not known:
        raise RecordError(
            f"BLEU was scored with the tokeniser {name} ({signature}), which this "
            f"sacreBLEU does not have; it has {', '.join(BLEU.TOKENIZERS)}"
        )
    return max(known, key=len)
