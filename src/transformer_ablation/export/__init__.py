"""Runs as models of other software."""
