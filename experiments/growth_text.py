"""What ``experiments.growth`` found, for people."""

from typing import Any

from experiments.text_columns import aligned


def as_text(found: dict[str, Any]) -> str:
    """A line for each size that is varied."""
    head = "size|from|to|us a token|power, measured|of its operations|highest order"
    cells = [head.split("|")]
    for each in found["growth"]:
        first, last = each["points"][0], each["points"][-1]
        micros = "-".join(f"{1e6 * p['seconds']:,.1f}" for p in (first, last))
        powers = [
            f"{each[what]['fitted']:.2f} (last {each[what]['last']:.2f})"
            for what in ("seconds", "flops")
        ]
        sizes = [f"{p['size']:,}" for p in (first, last)]
        cells.append([each["size"], *sizes, micros, *powers, str(each["order"])])
    return f"{aligned(cells)}\n{found['seconds']:.0f} seconds in all"
