"""Rows of a study, their plan, and the launcher that runs them. No JAX here."""
