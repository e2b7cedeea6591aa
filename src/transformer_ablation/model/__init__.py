"""The networks as flax.linen modules, and the exact count of what they cost."""
