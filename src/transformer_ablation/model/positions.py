"""Where a token stands (section 3.5)."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from transformer_ablation.config import ModelConfig


def sinusoidal_table(
    length: int, d_model: int, layout: str = "interleaved"
) -> np.ndarray:
    """The sinusoids of ``length`` positions: [length, d_model].

    "interleaved" is the paper's formula: PE[pos, 2i] = sin(pos / 10000^(2i / d_model))
    and PE[pos, 2i + 1] = cos(same). "halves" is the authors' first code: all sines,
    then all cosines, their exponents from 0 to 1 in d_model / 2 - 1 steps.
    Computed in float64: an angle of 1000 has an error of 3e-5 in float32.
    """
    positions_L1 = np.arange(length, dtype=np.float64)[:, None]
    pairs, halves = d_model // 2, layout == "halves"
    steps = pairs - 1 if halves else pairs
    angles_LE = positions_L1 * 10_000.0 ** -(np.arange(pairs) / steps)[None]
    table_LD = np.empty((length, d_model))
    sines = slice(None, pairs) if halves else slice(0, None, 2)
    cosines = slice(pairs, None) if halves else slice(1, None, 2)
    table_LD[:, sines] = np.sin(angles_LE)
    table_LD[:, cosines] = np.cos(angles_LE)
    return table_LD.astype(np.float32)


def position_tables(
    config: ModelConfig, params: Any, length: int
) -> dict[str, np.ndarray]:
    """The vectors of the first positions, [L, D] by name; none without positions."""
    if config.positions == "sinusoidal":
        table_LD = sinusoidal_table(length, config.d_model, config.sinusoids)
        return {"sinusoidal": table_LD}
    if config.positions == "none":
        return {}
    names = {"source": "source_positions", "target": "target_positions"}
    return {use: np.asarray(params[n]["table"][:length]) for use, n in names.items()}


class Positions(nn.Module):
    """Adds a vector for each position: sinusoidal, learned, or none.

    A learned table has ``max_length`` rows. JAX would clamp a position beyond
    it in silence, so a longer sequence is refused when the shape is known, and
    callers check what they decode on the host.
    """

    config: ModelConfig

    def setup(self):
        if self.config.positions == "learned":
            self.table = self.param(
                "table",
                # As spread as a token embedding after its scaling by 1/sqrt(d).
                nn.initializers.normal(self.config.d_model**-0.5),
                (self.config.max_length, self.config.d_model),
            )

    def vectors(self, length: int):
        """The first ``length`` position vectors [length, D], or None.

        Raises:
          ValueError: if a learned table is shorter than ``length``.
        """
        kind = self.config.positions
        if kind == "none":
            return None
        if kind == "sinusoidal":
            layout = self.config.sinusoids
            return jnp.asarray(sinusoidal_table(length, self.config.d_model, layout))
        if length > self.config.max_length:
            raise ValueError(
                f"a sequence of {length} positions does not fit into "
                f"model.max_length = {self.config.max_length} learned positions"
            )
        return self.table[:length]

    def __call__(self, x_BLD, positions_BL=None):
        """``x_BLD`` with the vectors of positions 0 to L-1, or of those given, added.

        Positions are not checked: JAX would clamp one beyond the table.
        """
        length = x_BLD.shape[1]
        if positions_BL is not None and self.config.positions == "learned":
            # A packed row may be longer than any sequence in it.
            length = min(length, self.config.max_length)
        table_LD = self.vectors(length)
        if table_LD is None:
            return x_BLD
        vectors = table_LD[None] if positions_BL is None else table_LD[positions_BL]
        return x_BLD + vectors.astype(x_BLD.dtype)

    def at(self, x_B1D, position, length: int):
        """One position added to every row; ``position`` is traced, < ``length``."""
        table_LD = self.vectors(length)
        if table_LD is None:
            return x_B1D
        return x_B1D + table_LD[position][None, None].astype(x_B1D.dtype)
