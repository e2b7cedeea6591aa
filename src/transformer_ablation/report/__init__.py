"""Records of runs, the tables made from them, and curves.

``record.json`` and ``sweep.json`` are all that a table reads. Nothing here imports
JAX or Flax.
"""
