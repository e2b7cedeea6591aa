"""``--help`` of every command line, and what is wrong with a flag's value."""

import re
from collections.abc import Sequence

from absl import flags

CONFIG_HELP = """\
  --config: FILE.py or FILE.py:ARGUMENT, a file with get_config(), and get_rows()
      where it has more than one row
  --config.SECTION.FIELD=VALUE: set a field of base; rows are derived from it"""


def help_text(
    summary: str, examples: Sequence[str], values: flags.FlagValues, takes_config: bool
) -> str:
    """Summary, examples and flags, for people."""
    lines = [summary, "", "Examples:"]
    lines += [f"  {example}" for example in examples]
    lines += ["", "Flags:", *([CONFIG_HELP] if takes_config else [])]
    for name in values:
        default = values[name].default
        shown = "" if default is None else f" (default: {default})"
        lines.append(f"  --{name}: {values[name].help}{shown}")
    return "\n".join(lines)


# What Python says of a value, and what people do.
_FAULTS = (
    ("Non-boolean argument", "true or false"),
    ("invalid literal for int", "a whole number"),
    ("could not convert string to float", "a number"),
)


def flag_error(error: Exception, command: str) -> str:
    """The message of a flag's or a usage's error, in words without Python's."""
    text = str(error)
    found = re.match(r"flag (--\w+=.*?): ", text, re.DOTALL)
    for python, words in _FAULTS:
        if found and python in text[found.end() :]:
            text = f"{found[1]}: must be {words}"
            break
    return f"{text}\nSee: python -m experiments.{command} --help"
