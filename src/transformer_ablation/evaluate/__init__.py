"""From parameters to scores: perplexity, translations, BLEU."""
