"""Self-contained HTML pages: one file each, which loads nothing."""
