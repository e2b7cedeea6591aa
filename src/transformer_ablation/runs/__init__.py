"""A trained run as an object: loading, translating, scoring, looking inside."""
