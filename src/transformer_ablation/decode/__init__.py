"""From a step function to translations; no model is imported here."""
