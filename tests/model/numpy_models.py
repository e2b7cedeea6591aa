"""The other architectures once more: float64 numpy, one sentence at a time.

Written from the equations of the papers, with a loop over positions where the models
have products of all of them: nothing is padded, packed or fused.
"""

import dataclasses

import jax
import numpy as np

from tests.model.numpy_transformer import BOS, SMALL, small_module
from transformer_ablation.config import of_architecture


def fields_of(architecture: str, **fields) -> dict:
    """Fields of the model that make ``SMALL`` one of an architecture."""
    all_fields = of_architecture(architecture)
    names = {f.name for f in dataclasses.fields(SMALL)}
    own = {p.removeprefix("model."): v for p, v in all_fields.items()}
    return {**{n: v for n, v in own.items() if n in names}, **fields}


# Both cells with and without attention, each way of reading, one layer and several; as
# a case costs compilations, convolutions of other widths are tested layer by layer.
VARIANTS = {
    "lstm_2": fields_of("recurrent", num_layers=2),
    "gru_reversed": fields_of(
        "recurrent", recurrent_cell="gru", reverse_source=True, tied_embeddings="none"
    ),
    "lstm_attention_2": fields_of(
        "recurrent", num_layers=2, recurrent_attention="additive"
    ),
    "gru_attention": fields_of(
        "recurrent",
        recurrent_cell="gru",
        recurrent_attention="additive",
        scale_embeddings=False,
        scale_logits=True,
        tied_embeddings="decoder",
    ),
    "dilated_3": fields_of(
        "convolutional",
        num_layers=3,
        kernel_width=2,
        kernel_dilation="doubling",
        compatibility="dot",
        positions="learned",
        max_length=24,
    ),
}


def variant(name: str):
    """The linen model of a variant."""
    return small_module(**VARIANTS[name])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class NumpyModel:
    """Logits of one sentence pair, and the weights of attention by layer: [N, T, S]."""

    def __init__(self, model, params):
        self.model = model
        self.params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
        self.weights: list[np.ndarray] = []

    def logits(self, source, target) -> np.ndarray:
        """[T, V] for ids without padding; ``target`` ends in what is predicted."""
        run = {"recurrent": self._recurrent, "convolutional": self._convolutional}
        e_SD, g_TD = (
            self._embed("source", source),
            self._embed("target", [BOS, *target[:-1]]),
        )
        x_TD = run[self.model.architecture](e_SD, g_TD)
        factor = self.model.d_model**-0.5 if self.model.scale_logits else 1.0
        return x_TD @ self._matrix("output").T * factor

    def _matrix(self, use):
        for name in (use, "target" if use == "output" else "shared", "shared"):
            if f"{name}_embedding" in self.params:
                return self.params[f"{name}_embedding"]
        raise KeyError(use)

    def _embed(self, use, tokens):
        size, rows = self.model.d_model, []
        for place, token in enumerate(tokens):
            row_D = self._matrix(use)[token].copy()
            if self.model.scale_embeddings:
                row_D *= np.sqrt(size)
            if self.model.positions == "learned":
                row_D += self.params[f"{use}_positions"]["table"][place]
            elif self.model.positions == "sinusoidal":
                angles = place / 10_000 ** (np.arange(0, size, 2) / size)
                row_D[0::2] += np.sin(angles)
                row_D[1::2] += np.cos(angles)
            rows.append(row_D)
        return np.array(rows)

    # Recurrent.

    def cell(self, part, state, x, context=None):
        """The next state of a cell: [h] or [h, c]."""
        h, size = state[0], len(state[0])
        fed = x @ part["input_kernel"] + part["bias"]
        if context is not None:
            fed = fed + context @ part["context_kernel"]
        back = h @ part["recurrent_kernel"]
        gate = [slice(n * size, (n + 1) * size) for n in range(4)]
        if self.model.recurrent_cell == "gru":
            r = sigmoid(fed[gate[0]] + back[gate[0]])
            z = sigmoid(fed[gate[1]] + back[gate[1]])
            n = np.tanh(fed[gate[2]] + r * (back[gate[2]] + part["hidden_bias"]))
            return [(1 - z) * n + z * h]
        i, f, g, o = (fed[one] + back[one] for one in gate)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]

    def _zeros(self, part):
        size = len(part["recurrent_kernel"])
        return [np.zeros(size)] * (1 if self.model.recurrent_cell == "gru" else 2)

    def read(self, part, x_LD):
        """The outputs of a layer in the order read, and its last state."""
        state, outputs = self._zeros(part), []
        for x_D in x_LD:
            state = self.cell(part, state, x_D)
            outputs.append(state[0])
        return np.array(outputs), state

    def _recurrent(self, x_SD, g_TD):
        attends = self.model.recurrent_attention == "additive"
        encoder, decoder, states = self.params["encoder"], self.params["decoder"], []
        for n in range(self.model.num_layers):
            outputs, lasts = [], []
            for way in ("forward", "backward"):
                if f"{way}_{n}" not in encoder:
                    continue
                turn = slice(None, None, -1 if way == "backward" else 1)
                found_SU, last = self.read(encoder[f"{way}_{n}"], x_SD[turn])
                outputs.append(found_SU[turn])
                lasts.append(last)
            assert len(lasts) == 1 + attends
            x_SD = np.concatenate(outputs, axis=1)
            states.append([np.concatenate(part) for part in zip(*lasts, strict=True)])
        rows = [
            self._decoder_step(decoder, states, g_D, x_SD if attends else None)
            for g_D in g_TD
        ]
        if attends:
            self.weights = [np.array([row_S for _, row_S in rows])]
        return np.array([x_D for x_D, _ in rows])

    def _decoder_step(self, decoder, states, x_D, memory_SD):
        """The hidden state and weights of a step; ``states`` move on."""
        context, weights_S = None, None
        if memory_SD is not None:
            part = decoder["cross_attention"]
            query = states[0][0] @ part["query_kernel"]
            scores = [
                part["vector"] @ np.tanh(query + m_D @ part["key_kernel"])
                for m_D in memory_SD
            ]
            odds = np.exp(scores - max(scores))
            weights_S = odds / odds.sum()
            context = weights_S @ memory_SD
        for n, state in enumerate(states):
            layer = decoder[f"layers_{n}"]
            if n and context is not None:
                x_D = np.concatenate([x_D, context])
            inner = context if n == 0 else None
            states[n] = self.cell(layer, state, x_D, inner)
            x_D = states[n][0]
        if context is not None:
            out = decoder["readout"]
            joined = np.concatenate([x_D, context])
            x_D = np.tanh(joined @ out["kernel"] + out["bias"])
        return x_D, weights_S

    # Convolutional.

    def convolution(self, part, x_LD, first, dilation):
        """Gated: the kernel's place k sees ``(first + k) * dilation`` further."""
        rows = []
        for place in range(len(x_LD)):
            total = part["bias"].copy()
            for k, kernel_DO in enumerate(part["kernel"]):
                seen = place + (first + k) * dilation
                if 0 <= seen < len(x_LD):
                    total += x_LD[seen] @ kernel_DO
            size = len(total) // 2
            rows.append(total[:size] * sigmoid(total[size:]))
        return np.array(rows)

    def _convolutional(self, e_SD, g_TD):
        encoder, decoder = self.params["encoder"], self.params["decoder"]
        width, dot = self.model.kernel_width, self.model.compatibility == "dot"
        doubling = self.model.kernel_dilation == "doubling"
        z_SD, x_TD, half = e_SD, g_TD, np.sqrt(0.5)
        numbers = range(self.model.num_layers)
        far = [2**n if doubling else 1 for n in numbers]
        for n in numbers:
            layer = encoder[f"layers_{n}"]
            z_SD = (z_SD + self.convolution(layer, z_SD, -(width // 2), far[n])) * half
        for n in numbers:
            layer = decoder[f"layers_{n}"]
            y_TD = self.convolution(layer["convolution"], x_TD, 1 - width, far[n])
            d_TD = y_TD @ layer["query"]["kernel"] + layer["query"]["bias"] + g_TD
            scores_TS = d_TD @ z_SD.T / (1 if dot else np.sqrt(self.model.d_model))
            odds_TS = np.exp(scores_TS - scores_TS.max(axis=1, keepdims=True))
            weights_TS = odds_TS / odds_TS.sum(axis=1, keepdims=True)
            self.weights.append(weights_TS)
            c_TD = np.sqrt(len(e_SD)) * weights_TS @ (z_SD + e_SD)
            c_TD = c_TD @ layer["output"]["kernel"] + layer["output"]["bias"]
            x_TD = (x_TD + (y_TD + c_TD) * half) * half
        return x_TD
