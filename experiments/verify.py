"""``python -m experiments.verify``: what must hold, shown on this very machine."""

import json
import sys

from absl import flags

from experiments import command, shared_flags
from transformer_ablation.sweep.file import SweepFile

NAMES = ("devices", "resume", "packed", "decode")
VERDICTS = {True: "holds", False: "DOES NOT HOLD", None: "nothing to compare"}


def define(values: flags.FlagValues) -> None:
    """Flags of the verification."""
    text = "which of the checks"
    flags.DEFINE_enum("check", "all", [*NAMES, "all"], text, flag_values=values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Run the checks on base; 1 if one finds a difference."""
    from experiments.verify_checks import CHECKS
    from transformer_ablation import parallel
    from transformer_ablation.data.tokens import prepare

    cache = shared_flags.cache_folder(options)
    parallel.set_up(cache)
    prepared = prepare(sweep_file.base.data, cache)
    chosen = NAMES if options.check == "all" else (options.check,)
    findings = []
    for name in chosen:
        print(f"checking {name} ...", file=sys.stderr, flush=True)
        findings.append(CHECKS[name](sweep_file.base, prepared))
    if options.format == "json":
        print(json.dumps({"checks": [f._asdict() for f in findings]}, indent=1))
    else:
        for found in findings:
            print(f"{found.check}: {VERDICTS[found.equal]}. {found.text}.")
    return 1 if any(found.equal is False for found in findings) else 0


COMMAND = command.Command(
    name="verify",
    summary="Show on this machine that an update is the same on 1 and on all devices, "
    "that a resumed run equals a straight one, that pairs which share a row do not see "
    "each other, and that decoding is exact. Exit 1 on a difference.",
    examples=(
        "python -m experiments.verify --config=configs/table3.py:grammar",
        "python -m experiments.verify --config=configs/table3.py:wmt14 --check=devices",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
