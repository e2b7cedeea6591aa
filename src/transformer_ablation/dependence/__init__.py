"""What an output depends on: how far a layer reaches, and how strongly."""
