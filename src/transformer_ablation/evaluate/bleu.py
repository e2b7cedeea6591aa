"""BLEU by sacreBLEU, on detokenised text against the untouched references."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU


class Bleu(NamedTuple):
    """``signature`` says how ``value`` (0 to 100) was computed."""

    value: float
    signature: str
    sentences: int


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """sacreBLEU's default BLEU (13a tokenisation, mixed case) of all sentences.

    Raises:
      ValueError: if the counts differ or are 0; BLEU of part of a test set is
        another number.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} translations for {len(references)} references"
        )
    if not references:
        raise ValueError("there is no sentence to score")
    metric = BLEU()
    # One stream of references, not one list a sentence.
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Bleu(result.score, str(metric.get_signature()), len(references))
