"""Maximum path lengths of Table 1, from gradients and from compiled programs."""

from typing import Any

from experiments.complexity_layers import stacks


def paths(expanded: list[Any], lengths: list[int]) -> list[dict[str, Any]]:
    """Of each kind of stack, a point for each length.

    A path is as many steps one after the other as join the ends of a sequence, in
    the direction that needs more: layers, times the steps of one layer's loops.
    """
    from transformer_ablation.benchmark.program import steps_of
    from transformer_ablation.dependence.reach import layers_to_cross

    found: dict[tuple[str, str], dict[str, Any]] = {}
    for n in lengths:
        for row, label, known, layers in stacks(expanded, n):
            count = layers_to_cross(layers, n)
            first = layers[0]
            steps = steps_of(first.apply, first.parameters, *first.inputs(1, n))
            line = {"row": row, "label": label, "printed": known.path, "points": []}
            found.setdefault((row, label), line)["points"].append(
                {
                    "n": n,
                    "layers": count,
                    "sequential": steps,
                    "path": count and steps and count * steps,
                    "bound": known.bound(n),
                }
            )
    return list(found.values())
