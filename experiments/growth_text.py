"""What ``experiments.growth`` found, for people."""

from typing import Any


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
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]
    return "\n".join([*lines, f"{found['seconds']:.0f} seconds in all"])
