"""Flags of ``experiments.complexity``, and the sizes that they ask for."""

from typing import Any, NamedTuple

from absl import flags

from experiments import shared_flags, time_flags
from experiments.command import UsageError

LENGTHS = "16,32,64,128,256,512,1024,2048,4096"
WIDTHS = "64,128,256,512,1024"
PATHS = "16,64,256"
QUICK = {"n": "16,64,256", "d": "64,128,256", "path_n": "16,32"}
# Gradients through more steps of a recurrent layer are too small for a float.
LONGEST_PATH = 256
# Of n, d, and sequences: more than any machine has memory for.
LARGEST = 2**20
# An hour for each layer at each size, a day for a call.
LONGEST = {"seconds": 3600.0, "most": 86400.0}


class Asked(NamedTuple):
    """Sizes by what is varied, n or d, and lengths for the paths."""

    axes: dict[str, list[Any]]
    path_n: list[int]


def define(values: flags.FlagValues) -> None:
    """Flags of the measurement."""
    given = {"flag_values": values}
    flags.DEFINE_list("rows", None, "rows of the config; all by default", **given)
    text = f"lengths, at d = fixed_d, to {LARGEST}; {LENGTHS} by default"
    flags.DEFINE_string("n", None, text, **given)
    text = f"widths, at n = fixed_n, to {LARGEST}; {WIDTHS} by default"
    flags.DEFINE_string("d", None, text, **given)
    text = f"lengths for the paths, to {LONGEST_PATH}; {PATHS} by default"
    flags.DEFINE_string("path_n", None, text, **given)
    text = "length where d is varied"
    flags.DEFINE_integer("fixed_n", 512, text, 2, LARGEST, **given)
    text = "width where n is varied"
    flags.DEFINE_integer("fixed_d", 512, text, 1, LARGEST, **given)
    text = "sequences at a time; costs are of one"
    flags.DEFINE_integer("batch", 1, text, 1, LARGEST, **given)
    text = "for each layer at each size, at least; three rounds are made in any case"
    flags.DEFINE_float("seconds", 0.5, text, **given)
    text = "seconds that a call may take; a layer that would take longer is not timed"
    flags.DEFINE_float("most", 10.0, text, **given)
    flags.DEFINE_boolean("quick", False, f"only {QUICK}, where not given", **given)
    text = "file of the figure, such as table1.svg or table1.png; needs matplotlib"
    flags.DEFINE_string("figure", None, text, **given)
    flags.DEFINE_string("out", None, "file to write instead of printing", **given)
    shared_flags.define_cache(values)
    shared_flags.define_format(values, ("text", "markdown", "csv", "json"))


def check(options: flags.FlagValues) -> Asked:
    """The sizes.

    Raises:
      UsageError: for a flag that cannot be followed.
    """
    from transformer_ablation.benchmark.complexity import Size

    for name, longest in LONGEST.items():
        time_flags.check_seconds(options, name, longest)
    n, d = (_sizes(options, name, 3) for name in ("n", "d"))
    path_n = _sizes(options, "path_n", 1)
    vanished = (
        "; a gradient through more steps of a recurrent layer is too small for a float"
    )
    for name, largest, most, why in (
        ("n", n[-1], LARGEST, ""),
        ("d", d[-1], LARGEST, ""),
        ("path_n", path_n[-1], LONGEST_PATH, vanished),
    ):
        if largest > most:
            raise UsageError(f"--{name}={largest}: must be at most {most}{why}")
    axes = {
        "n": [Size(length, options.fixed_d) for length in n],
        "d": [Size(options.fixed_n, width) for width in d],
    }
    return Asked(axes, path_n)


def _sizes(options: flags.FlagValues, name: str, least: int) -> list[int]:
    defaults = {"n": LENGTHS, "d": WIDTHS, "path_n": PATHS}
    text = getattr(options, name) or (QUICK if options.quick else defaults)[name]
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if len(found) < least or found[0] < 2:
        raise UsageError(
            f"--{name}={text}: must be at least {least} different whole numbers of 2 "
            f"or more, with commas, for example --{name}={QUICK[name]}"
        )
    return found
