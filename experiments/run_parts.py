"""What every process of a run does: its share of updates, validation and scores.

Process 0 does more (``run.py``): it reads and writes. All must send and receive in the
same order: the state, updates and validations, parameters, scores.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments import run_hooks, scoring
from experiments.run_sharing import first_state, shared_params, zeros
from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.evaluate.perplexity import Scorer, make_scorer
from transformer_ablation.parallel import hosts
from transformer_ablation.runs.building import build_model, train_batches
from transformer_ablation.train import step
from transformer_ablation.train.loop import Diverged, Every, Hook, train


class Parts(NamedTuple):
    """What a run is made of."""

    config: Config
    prepared: Prepared
    model: Any
    scorer: Scorer

    @property
    def shapes(self) -> step.TrainState:
        """Those of the state."""
        return step.state_shapes(self.model, self.config)

    def update(self) -> Callable[..., Any]:
        """An update of the state."""
        return step.make_update(self.model, self.config)

    def scored(self, params: Any, steps: list[int]) -> scoring.Scored:
        """Parameters to be scored."""
        return scoring.Scored(
            self.config, self.prepared, self.model, self.scorer, params, steps
        )


def parts(config: Config, prepared: Prepared) -> Parts:
    """Model and scorer of a config."""
    model = build_model(config, prepared.vocabulary.size)
    return Parts(config, prepared, model, make_scorer(model))


def take_part(parts: Parts, stop: threading.Event) -> str:
    """The share of a process that writes nothing; how the run ended, as far as seen."""
    config = parts.config

    def validate(number: int, state: step.TrainState) -> None:
        run_hooks.validated(config, parts.prepared, parts.scorer, state, stop)

    hook = run_hooks.validation(config, validate)
    state = first_state(parts.model, config)
    try:
        state = train_on(parts, state, parts.update(), [hook], hook, False, stop)
    except Diverged:
        return "diverged"
    if int(state.step) < config.train.steps:
        return "preempted"
    scored = parts.scored(shared_params(zeros(parts.shapes.params)), [])
    found = scoring.score(scored, scoring.splits(config), None, stop=stop)
    return "preempted" if found is None else "finished"


def train_on(
    parts: Parts,
    state: step.TrainState,
    update: Callable[..., Any],
    hooks: Sequence[Hook],
    validation: Every,
    missed: bool,
    stop: threading.Event,
    compiling: Callable[[], float] = lambda: 0.0,
) -> step.TrainState:
    """The updates that are left, and before them a validation that was given up.

    ``missed`` is whether process 0 lacks a validation of the state that it starts from.
    """
    config, start = parts.config, int(state.step)
    if validation.needs_state(start) and hosts.agreed(missed):
        validation.act(start, state)
    own = (parallel.device_count(), *parallel.processes())
    batches = train_batches(config, parts.prepared)
    return train(
        state,
        update,
        batches.iterate(start, config.train.steps, *own),
        key=step.purpose_key(config.train.seed, step.DROPOUT),
        rates_at=lambda number: step.rates_at(config, number),
        hooks=hooks,
        stop=stop,
        compiling=compiling,
    )
