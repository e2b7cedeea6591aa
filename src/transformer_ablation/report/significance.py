"""What the tests of a row say together: over seeds, and over the sentences of each.

Every p is corrected by Holm's method over the rows that were tested alike: over seeds
one family a quantity, over sentences one family a seed and kind of test.
"""

import dataclasses
from collections.abc import Iterable, Mapping

from transformer_ablation.report.seed_tests import LEVEL, SeedTest, holm, seed_test
from transformer_ablation.report.sentence_tests import Sentences, SentenceTest

# {quantity: {seed: value}} of a row; the quantities are bleu and ppl.
Values = Mapping[str, Mapping[int, float]]


@dataclasses.dataclass(frozen=True)
class RowTests:
    """Tests of a row against base; a row that is base, or lacks one, has none."""

    seeds: Mapping[str, SeedTest] = dataclasses.field(default_factory=dict)
    sentences: Mapping[int, Mapping[str, SentenceTest]] = dataclasses.field(
        default_factory=dict
    )

    @property
    def basis(self) -> str | None:
        """``seeds`` where BLEU of two is there, else ``sentences``, or None."""
        bleu = self.seeds.get("bleu")
        if bleu is not None and bleu.n >= 2:
            return "seeds" if bleu.p is not None else None
        return "sentences" if self.sentences else None

    @property
    def p(self) -> float | None:
        """The corrected p of the basis, of ΔBLEU."""
        if self.basis == "seeds":
            return self.seeds["bleu"].adjusted
        if self.basis == "sentences":
            return self.sentence_p(next(iter(self.sentences)))
        return None

    @property
    def distinguishable(self) -> bool | None:
        """Whether that p is below 5%; None where nothing could be tested."""
        return None if self.p is None else self.p < LEVEL

    def sentence_p(self, seed: int) -> float | None:
        """The largest corrected p of a seed's tests of sentences."""
        found = [test.adjusted for test in self.sentences[seed].values()]
        return max((p for p in found if p is not None), default=None)

    @property
    def different_seeds(self) -> int:
        """Seeds whose two models differ on the sentences by every test made."""
        ps = [self.sentence_p(seed) for seed in self.sentences]
        return sum(p is not None and p < LEVEL for p in ps)


def tests_of_rows(
    values: Mapping[str, Values], base: str, method: str, sentences: Sentences
) -> dict[str, RowTests]:
    """Tests of every row but base, corrected over these rows."""
    others = [name for name in values if name != base]
    by_quantity = {
        quantity: _over_seeds(values, others, base, quantity, method)
        for quantity in ("bleu", "ppl")
    }
    corrected = _over_sentences(sentences, others)
    return {
        name: RowTests(
            {q: tests[name] for q, tests in by_quantity.items() if name in tests},
            corrected.get(name, {}),
        )
        for name in others
    }


def _over_seeds(
    values: Mapping[str, Values],
    others: Iterable[str],
    base: str,
    quantity: str,
    method: str,
) -> dict[str, SeedTest]:
    theirs = values[base].get(quantity, {})
    found = {n: seed_test(values[n].get(quantity, {}), theirs, method) for n in others}
    tests = {name: test for name, test in found.items() if test is not None}
    adjusted = holm({name: test.p for name, test in tests.items()})
    return {n: test._replace(adjusted=adjusted[n]) for n, test in tests.items()}


def _over_sentences(
    sentences: Sentences, others: Iterable[str]
) -> dict[str, dict[int, dict[str, SentenceTest]]]:
    flat = {
        (name, seed, kind): test
        for name in others
        for seed, tests in sentences.tests.get(name, {}).items()
        for kind, test in tests.items()
    }
    found: dict[str, dict[int, dict[str, SentenceTest]]] = {}
    for seed, kind in {key[1:] for key in flat}:
        family = {n: t.p for (n, s, k), t in flat.items() if (s, k) == (seed, kind)}
        for name, p in holm(family).items():
            test = flat[name, seed, kind]._replace(adjusted=p)
            found.setdefault(name, {}).setdefault(seed, {})[kind] = test
    return {
        name: {
            seed: dict(sorted(tests.items())) for seed, tests in sorted(all_.items())
        }
        for name, all_ in found.items()
    }
