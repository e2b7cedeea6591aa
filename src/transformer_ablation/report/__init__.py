"""Records of runs, the tables made from them, and curves.

A table reads ``sweep.json``, ``record.json`` and stored texts. Nothing here imports
JAX or Flax.
"""
