"""Records of runs, the tables made from them, and curves.

A table reads ``sweep.json``, ``record.json`` and stored texts; a report, whose HTML
``page/`` makes, also reads ``metrics.jsonl``. Nothing here imports JAX or Flax.
"""
