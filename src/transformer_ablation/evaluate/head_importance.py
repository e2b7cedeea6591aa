"""What is lost without a head (Michel et al. 2019; Voita et al. 2019).

A head is taken away by setting its output to zero, which is the same as setting the
rows of the output projection that read it to zero. So parameters are changed and the
model is not, training knows nothing of it, and which heads are kept is an argument of
one compiled program.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.config import DecodeConfig, ModelConfig
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.attention import KINDS
from transformer_ablation.evaluate.perplexity import Perplexity, make_scorer, perplexity
from transformer_ablation.evaluate.translation import Translation, Translator

# 1 for a head that is kept and 0 for one that is not: [N, H] by kind.
Kept = Mapping[str, np.ndarray]


class Head(NamedTuple):
    """One head; ``layer`` and ``number`` count from 0."""

    kind: str
    layer: int
    number: int


def heads(config: ModelConfig) -> list[Head]:
    """All heads of a model, kind by kind and layer by layer."""
    shape = config.num_layers, config.num_heads
    return [Head(kind, *place) for kind in KINDS for place in np.ndindex(*shape)]


def kept(config: ModelConfig, without: Sequence[Head] = ()) -> dict[str, np.ndarray]:
    """All heads but some."""
    shape = config.num_layers, config.num_heads
    found = {kind: np.ones(shape, np.float32) for kind in KINDS}
    for head in without:
        found[head.kind][head.layer, head.number] = 0
    return found


def masked(config: ModelConfig, params: Any, keep: Kept) -> Any:
    """The parameters with which the other heads put out zero.

    ``keep`` may be traced. Where projections have biases, that of the output stays.
    """
    params = dict(params)
    for kind, (stack, module) in KINDS.items():
        attention = params[stack][module]
        kernel = attention["output"]["kernel"]  # [N, H * U, D]
        shape = (config.num_layers, config.num_heads, config.d_v, config.d_model)
        rows = kernel.reshape(shape) * keep[kind][:, :, None, None]
        output = {**attention["output"], "kernel": rows.reshape(kernel.shape)}
        layers = {**params[stack], module: {**attention, "output": output}}
        params[stack] = layers
    return params


class Masked:
    """A model as scorers and searches know it, whose parameters are (params, kept)."""

    def __init__(self, model: Any):
        self.model, self.config, self.pad_id = model, model.config, model.pad_id

    def apply(self, variables: Any, *args: Any, **kwargs: Any) -> Any:
        """What the model makes with the heads that are kept."""
        params, keep = variables["params"]
        variables = {**variables, "params": masked(self.config, params, keep)}
        return self.model.apply(variables, *args, **kwargs)


def perplexities(
    model: Any,
    params: Any,
    pairs: TokenizedSplit,
    rows: int,
    chosen: Sequence[Head],
) -> Iterator[Perplexity]:
    """That of the whole model, then that without each of the heads.

    ``params`` are replicated; ``rows`` sentences are scored together.
    """
    scorer = make_scorer(Masked(model))
    for without in ((), *((head,) for head in chosen)):
        yield perplexity(scorer, (params, kept(model.config, without)), pairs, rows)


def translations(
    model: Any,
    params: Any,
    sources: Ragged,
    texts: Sequence[str],
    decode: DecodeConfig,
    chosen: Sequence[Head],
) -> Iterator[list[Translation]]:
    """Those of the whole model, then those without each of the heads.

    ``texts`` are the sources as text: what is blank is translated as blank.
    """
    translator = Translator(Masked(model), decode)
    for without in ((), *((head,) for head in chosen)):
        given = params, kept(model.config, without)
        yield translator.best(given, sources, texts)
