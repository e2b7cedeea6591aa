"""Questions that the paper raises and does not answer, a sweep each.

Every file has ``get_config(scale)`` with the scales of ``configs/table3.py`` and
``get_rows()``; its first lines say what is asked, what the paper says of it, and what
came out where it was run. docs/questions.md has the tables.
"""
