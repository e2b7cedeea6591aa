"""What is run: a file a study, each a difference from ``base``."""
