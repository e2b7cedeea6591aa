"""Corpora, vocabulary and token caches, and batches; imports no JAX."""
