"""From batches to parameters: loss, schedule, update, loop, checkpoints."""
