"""Charts for TensorBoard's Custom Scalars tab.

Such a chart overlays tags, and shows every run that has one of them. So a run writes a
few of its scalars a second time, under a tag that names the group of its row: the chart
of a group then shows base and the rows of the group, and no other.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.summary import custom_scalars

BASE = "base"
# What is written for the group as well, and the heading of its charts.
OVERLAID = {
    "validation/perplexity": "validation perplexity",
    "train/nll": "training loss without smoothing",
}
NORMS = {
    "gradient_norm": "gradient norm",
    "parameter_norm": "parameter norm",
    "update_ratio": "update to parameter ratio",
}


def group_tag(group: str, tag: str) -> str:
    """The tag of a scalar for the charts of a row's group.

    ``/`` parts tags into sections, so it is none of a group's letters.
    """
    name = re.sub(r"[^-.\w]", "_", group)
    return f"group_{name}/{tag.replace('/', '_')}"


def layout(groups: Iterable[str]) -> Summary:
    """A category a scalar with a chart a group, and one of norms, for all runs.

    ``groups`` are those of the sweep's rows, in order.
    """
    names = [group for group in dict.fromkeys(groups) if group != BASE]
    categories: dict[str, Mapping[str, Any]] = {}
    for tag, heading in OVERLAID.items():
        if names:
            categories[f"Rows by group: {heading}"] = {
                f"base and group {name}": ["Multiline", _exactly(name, tag)]
                for name in names
            }
    categories["Parts of the model"] = {
        heading: ["Multiline", [f"^{name}/(?!all$).*$"]]
        for name, heading in NORMS.items()
    }
    return custom_scalars(categories)


def _exactly(name: str, tag: str) -> list[str]:
    return [f"^{re.escape(group_tag(group, tag))}$" for group in (BASE, name)]
