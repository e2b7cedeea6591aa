"""Updates, dropout and the training loop, for ``experiments.bench``."""

from itertools import cycle
from typing import Any

from experiments.bench_subject import Subject
from transformer_ablation import parallel
from transformer_ablation.benchmark import timing, work

FAR = 10**6  # updates; the loop is stopped by the clock long before
RATES = ("dropout_rate", "attention_dropout_rate", "activation_dropout_rate")


def measure(subject: Subject) -> dict[str, Any]:
    """Times of updates by shape, of an epoch, of dropout, and of the loop."""
    measured = [measure_shape(subject, sample) for sample in subject.samples]
    seconds, rates = work.epoch_rates(
        [
            (sample.updates_per_epoch, sample.work, update["flops"], median)
            for sample, update in zip(subject.samples, measured, strict=True)
            for median in [update["seconds"]["median"]]
        ]
    )
    return {
        "updates": measured,
        "epoch": {"seconds": seconds, **rates._asdict()},
        "dropout": measure_dropout(subject),
        "loop": measure_loop(subject),
    }


def measure_shape(subject: Subject, sample: work.Sample) -> dict[str, Any]:
    """Updates on batches of one shape."""
    name, batches = shape_name(sample.shape), cycle(sample.batches)
    subject.say(f"updates of {name}")

    def update() -> None:
        subject.updater.update(next(batches))

    subject.programs.first(f"update {name}", update)
    times = timing.spread(timing.repeat(update, subject.seconds))
    flops = work.training_flops(
        subject.config.model, subject.model.vocabulary_size, sample.work
    )
    return {
        **sample.shape._asdict(),
        "updates_per_epoch": sample.updates_per_epoch,
        **sample.work._asdict(),
        "flops": flops,
        "seconds": times._asdict(),
        **work.rates(sample.work, flops, times.median)._asdict(),
    }


def measure_dropout(subject: Subject) -> dict[str, Any]:
    """Updates with the config's dropout over those without, in alternation."""
    name, batch = shape_name(subject.usual.shape), subject.usual.batches[0]
    subject.say(f"updates of {name} with and without dropout")

    def update(dropout: bool) -> None:
        subject.updater.update(batch, dropout=dropout)

    subject.programs.first(f"update {name}, no dropout", lambda: update(False))
    calls = [lambda: update(True), lambda: update(False)]
    on, off = timing.in_turn(calls, subject.seconds)
    return {
        "rates": {rate: getattr(subject.config.regularization, rate) for rate in RATES},
        "with_seconds": timing.spread(on)._asdict(),
        "without_seconds": timing.spread(off)._asdict(),
        "ratio": timing.ratios(on, off)._asdict(),
    }


def measure_loop(subject: Subject) -> dict[str, Any]:
    """The training loop with its pipeline of batches."""
    subject.say("the training loop")
    batches = subject.batches.iterate(0, FAR, parallel.device_count())
    found = subject.updater.loop(batches, subject.seconds)
    return {
        **found._asdict(),
        "wait_share": found.wait_share,
        "source_tokens_per_second": found.source_tokens / found.seconds,
        "target_tokens_per_second": found.target_tokens / found.seconds,
    }


def shape_name(shape: Any) -> str:
    """``rows x source x target``."""
    return f"{shape.rows}x{shape.source_length}x{shape.target_length}"
