"""``--help`` of every command line."""

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
