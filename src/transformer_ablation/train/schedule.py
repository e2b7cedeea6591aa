"""The learning rate (section 5.3, eq. 3)."""


def learning_rate(step: int, d_model: int, warmup_steps: int, scale: float) -> float:
    """scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Updates count from 1, so the first one has a rate above 0.

    Raises:
      ValueError: for a step below 1.
    """
    if step < 1:
        raise ValueError(f"updates count from 1, not {step}")
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
