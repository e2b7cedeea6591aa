"""What prepared data hold, as numbers for a report."""

from transformer_ablation.config import Config
from transformer_ablation.data.batches import TrainBatches
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.data.tokens import Prepared


def summarize(prepared: Prepared, config: Config) -> dict:
    """Counts, hashes, shapes and padding, ready for JSON."""
    data = config.data
    batches = TrainBatches(
        prepared.train,
        tokens_per_batch=data.tokens_per_batch,
        length_buckets=data.length_buckets,
        packed_length=data.packed_length,
        max_train_length=data.max_train_length,
        accumulation_steps=config.optimizer.accumulation_steps,
        seed=config.train.seed,
        plan=prepared.plan,
    )
    splits = {
        data.train_split: prepared.train,
        data.validation_split: prepared.validation,
        data.test_split: prepared.test,
    }
    return {
        "manifest": prepared.corpus.manifest,
        "manifest_hash": manifest_hash(prepared.corpus.manifest),
        "vocabulary": {
            "size": prepared.vocabulary.size,
            "hash": prepared.vocabulary.content_hash,
        },
        "filters": prepared.filters,
        "tokens": {name: _counts(split) for name, split in splits.items() if split},
        "updates_per_epoch": batches.updates_per_epoch,
        "padding": batches.padding(),
        "shapes": [shape._asdict() for shape in batches.shapes],
    }


def _counts(split: TokenizedSplit) -> dict:
    """Pairs, and tokens a side, the ends of sentences among them."""
    sides = {"source": split.source, "target": split.target}
    longest = {side: int(ragged.lengths.max()) for side, ragged in sides.items()}
    tokens = {side: ragged.token_count for side, ragged in sides.items()}
    return {"pairs": len(split), **tokens, "longest": longest}
