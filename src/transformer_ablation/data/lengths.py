"""Whether the sentences at hand fit the positions a model has."""

from transformer_ablation.config import Config, ConfigError
from transformer_ablation.data.tokens import Prepared


def check_lengths(prepared: Prepared, config: Config) -> None:
    """Refuses learned positions too few for what is trained on or decoded.

    JAX would clamp a position beyond the table in silence. Sinusoids have no
    end and are not limited.

    Raises:
      ConfigError: with the length that is needed and where it comes from.
    """
    if config.model.positions != "learned":
        return
    have = config.model.max_length
    problems = []
    for name, split in (
        (config.data.train_split, prepared.train),
        (config.data.validation_split, prepared.validation),
        (config.data.test_split, prepared.test),
    ):
        if split is None:
            continue
        source = int(split.source.lengths.max(initial=0))
        target = int(split.target.lengths.max(initial=0))
        needs = {"source": source, "target": target}
        if split is not prepared.train:
            needs["translation"] = source + config.decode.extra_length
        for what, length in needs.items():
            if length > have:
                problems.append(
                    f"model.max_length: {have} learned positions are too few for the "
                    f"longest {what} of split {name!r}; it needs {length}"
                )
    if problems:
        raise ConfigError(problems)
