"""Flags that are times, and what times may be."""

from absl import flags

from experiments.command import UsageError


def define_limit(values: flags.FlagValues) -> None:
    """--time_limit."""
    text = (
        "minutes after which to save and stop, with exit code 75; before the end of "
        "a Slurm job this is done without it"
    )
    flags.DEFINE_float("time_limit", None, text, flag_values=values)


def limit(options: flags.FlagValues) -> float | None:
    """Minutes, or None.

    Raises:
      UsageError: if they are not a number above 0.
    """
    minutes = options.time_limit
    if minutes is not None and not 0 < minutes < 1e6:
        raise UsageError(
            f"--time_limit={minutes:g}: it must be a number of minutes above 0 and "
            "below a million, for example --time_limit=55"
        )
    return minutes


def check_seconds(options: flags.FlagValues, name: str, longest: float) -> None:
    """Refuses a time that is none.

    Raises:
      UsageError: unless it is above 0 and at most ``longest``.
    """
    if not 0 < (value := options[name].value) <= longest:
        raise UsageError(
            f"--{name}={value}: must be a number of seconds above 0, at most "
            f"{longest:,.0f}, for example --{name}=1"
        )
