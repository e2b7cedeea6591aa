"""The Transformer once more: float64 numpy, one sentence without padding at a time.

Written from the paper's text for the tests, with loops where the model has masks and
einsums: a query runs over the list of places it may see, so nothing is hidden and
nothing is padded. Parameters come in the layout of the model's own tree.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.architectures import new_model
from transformer_ablation.model.encoder_decoder import EncoderDecoder

# No id is the vocabulary's own: a hard-coded one is noticed.
PAD, BOS, EOS, VOCABULARY = 4, 1, 2, 23
SMALL = ModelConfig(
    architecture="transformer",
    num_layers=1,
    decoder_layers=None,
    d_model=12,
    d_ff=20,
    num_heads=2,
    d_k=7,
    d_v=5,
    positions="sinusoidal",
    sinusoids="interleaved",
    max_length=15,
    norm="post",
    layer_norm_epsilon=1e-6,
    tied_embeddings="all",
    scale_embeddings=True,
    embedding_stddev=None,
    scale_logits=False,
    compatibility="scaled_dot",
    attention_window=None,
    projection_biases=False,
    attention_implementation="own",
    rematerialize="none",
    recurrent_cell="lstm",
    recurrent_attention="none",
    reverse_source=False,
    kernel_width=3,
    kernel_dilation="none",
    dtype="float32",
)


@dataclasses.dataclass(frozen=True)
class Kept:
    """What is left (1 or 0) of each place that dropout may zero."""

    sums: float = 1.0  # sums of embedding and position; outputs of sub-layers
    weights: float = 1.0  # attention weights
    hidden: float = 1.0  # activations of the feed-forward network


def small_module(**fields) -> EncoderDecoder:
    """A linen model with some fields of ``SMALL`` changed."""
    model = dataclasses.replace(SMALL, **fields)
    return new_model(model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)


def parameter_shapes(module: EncoderDecoder):
    """The tree of parameter shapes and types, without compiling anything."""
    tokens_11 = jnp.ones((1, 1), jnp.int32)
    return jax.eval_shape(module.init, jax.random.key(0), tokens_11, tokens_11)[
        "params"
    ]


def random_parameters(module: EncoderDecoder, seed: int = 0):
    """Parameters of which none is zero or one, biases and gains included."""
    generator = np.random.default_rng(seed)

    def draw(path, leaf):
        name, noise = path[-1].key, generator.standard_normal(leaf.shape)
        if name in ("scale", "bias", "hidden_bias"):
            value = (name == "scale") + 0.3 * noise
        else:  # kernels [..., in, out], tables [..., D], vectors [..., K]
            fan_in = leaf.shape[-2 if name.endswith("kernel") else -1]
            value = noise * fan_in**-0.5
        return value.astype(np.float32)

    return jax.tree_util.tree_map_with_path(draw, parameter_shapes(module))


def random_sentences(shape: tuple[int, int], lengths, seed: int = 0) -> np.ndarray:
    """Token ids above PAD and BOS, row b padded behind ``lengths[b]`` of them."""
    generator = np.random.default_rng(seed)
    tokens_BL = generator.integers(5, VOCABULARY, shape).astype(np.int32)
    places_1L = np.arange(shape[1])[None]
    return np.where(places_1L < np.asarray(lengths)[:, None], tokens_BL, PAD)


class NumpyTransformer:
    """Logits of one sentence pair; attention weights by stack, kind, layer, head."""

    def __init__(self, model: ModelConfig, params, kept: Kept = Kept()):
        self.model, self.kept = model, kept
        self.params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
        self.weights: dict[tuple[str, str, int, int], np.ndarray] = {}

    def logits(self, source, target) -> np.ndarray:
        """[T, V] for ids without padding; ``target`` ends in what is predicted."""
        memory_SD = self._stack("encoder", self._embed("source", source), None)
        inputs = [BOS, *target[:-1]]
        x_TD = self._stack("decoder", self._embed("target", inputs), memory_SD)
        factor = self.model.d_model**-0.5 if self.model.scale_logits else 1.0
        return x_TD @ self._matrix("output").T * factor

    def _matrix(self, use):
        names = {
            "all": dict.fromkeys(("source", "target", "output"), "shared"),
            "decoder": {"source": "source", "target": "target", "output": "target"},
            "none": {"source": "source", "target": "target", "output": "output"},
        }[self.model.tied_embeddings]
        return self.params[f"{names[use]}_embedding"]

    def _embed(self, use, tokens):
        d_model = self.model.d_model
        factor = np.sqrt(d_model) if self.model.scale_embeddings else 1.0
        rows = []
        for place, token in enumerate(tokens):
            row_D = self._matrix(use)[token] * factor
            if self.model.positions == "learned":
                row_D = row_D + self.params[f"{use}_positions"]["table"][place]
            elif self.model.positions == "sinusoidal":
                for i in range(d_model // 2):
                    if self.model.sinusoids == "halves":
                        angle = place / 10_000 ** (i / (d_model // 2 - 1))
                        sine, cosine = i, d_model // 2 + i
                    else:
                        angle = place / 10_000 ** (2 * i / d_model)
                        sine, cosine = 2 * i, 2 * i + 1
                    row_D[sine] += np.sin(angle)
                    row_D[cosine] += np.cos(angle)
            rows.append(row_D)
        return np.array(rows) * self.kept.sums

    def _stack(self, name, x_LD, memory_SD):
        depth = self.model.num_layers
        if name == "decoder" and self.model.decoder_layers is not None:
            depth = self.model.decoder_layers
        for n in range(depth):
            layer = jax.tree.map(lambda leaf, n=n: leaf[n], self.params[name])
            kinds = ["self_attention", "feed_forward"]
            if memory_SD is not None:
                kinds.insert(1, "cross_attention")
            for kind in kinds:
                norm = layer[f"{kind}_residual"]["norm"]
                y_LD = self._norm(x_LD, norm) if self.model.norm == "pre" else x_LD
                if kind == "feed_forward":
                    y_LD = self._feed_forward(layer[kind], y_LD)
                else:
                    y_LD = self._attention(layer[kind], y_LD, memory_SD, name, kind, n)
                x_LD = x_LD + y_LD * self.kept.sums
                if self.model.norm == "post":
                    x_LD = self._norm(x_LD, norm)
        if self.model.norm == "pre":
            x_LD = self._norm(x_LD, self.params[f"{name}_norm"])
        return x_LD

    def _norm(self, x_LD, part):
        """Gain and bias around a row of mean 0 and (biased) variance 1."""
        centred_LD = x_LD - x_LD.mean(axis=1, keepdims=True)
        variance_L1 = (centred_LD**2).mean(axis=1, keepdims=True)
        root_L1 = np.sqrt(variance_L1 + self.model.layer_norm_epsilon)
        return centred_LD / root_L1 * part["scale"] + part["bias"]

    def _linear(self, part, x_LD, columns=slice(None)):
        """The kernel's columns, and their biases where the model has them."""
        assert ("bias" in part) == self.model.projection_biases
        bias = part["bias"][columns] if "bias" in part else 0.0
        return x_LD @ part["kernel"][:, columns] + bias

    def _feed_forward(self, part, x_LD):
        inner, outer = part["inner"], part["outer"]
        hidden_LF = np.maximum(0, x_LD @ inner["kernel"] + inner["bias"])
        return hidden_LF * self.kept.hidden @ outer["kernel"] + outer["bias"]

    def _seen(self, place, length, kind, stack):
        """The memory places that the query at ``place`` may attend to."""
        if kind == "cross_attention":
            return list(range(length))
        first, last = 0, length - 1
        if self.model.attention_window is not None:
            # r places around one's own; an even r has the odd one on the left.
            first = place - self.model.attention_window // 2
            last = first + self.model.attention_window - 1
        if stack == "decoder":
            last = min(last, place)
        return [m for m in range(length) if first <= m <= last]

    def _attention(self, part, x_LD, memory_SD, stack, kind, n):
        model = self.model
        memory_MD = x_LD if kind == "self_attention" else memory_SD
        heads = []
        for h in range(model.num_heads):
            of_k, of_v = _columns(h, model.d_k), _columns(h, model.d_v)
            q_LK = self._linear(part["query"], x_LD, of_k)
            k_MK = self._linear(part["key"], memory_MD, of_k)
            v_MU = self._linear(part["value"], memory_MD, of_v)
            weights_LM = np.zeros((len(x_LD), len(memory_MD)))
            for place, q_K in enumerate(q_LK):
                seen = self._seen(place, len(memory_MD), kind, stack)
                scores = [self._score(q_K, k_MK[m], part, h) for m in seen]
                odds = np.exp(np.array(scores) - max(scores))
                weights_LM[place, seen] = odds / odds.sum()
            self.weights[stack, kind, n, h] = weights_LM
            heads.append(weights_LM * self.kept.weights @ v_MU)
        return self._linear(part["output"], np.concatenate(heads, axis=1))

    def _score(self, q_K, k_K, part, head):
        if self.model.compatibility == "additive":
            return part["vector"][head] @ np.tanh(q_K + k_K)
        scaled = self.model.compatibility == "scaled_dot"
        return q_K @ k_K / (np.sqrt(self.model.d_k) if scaled else 1.0)


def _columns(head, width):
    return slice(head * width, (head + 1) * width)
