"""Multi30k task 1: image descriptions in English, German and French."""
