"""Ablation studies of the Transformer of "Attention Is All You Need"."""

__version__ = "0.1.0"

# Rises in any change that can move a number in a record; tables refuse to mix two.
RESULTS_VERSION = 1
