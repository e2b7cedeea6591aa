"""A synchronous English-German grammar, written here, as a small offline corpus."""
