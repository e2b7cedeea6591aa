"""Parameters, operations and memory of ``recurrent`` models, by arithmetic alone."""

from collections.abc import Iterator

from transformer_ablation.config import ModelConfig

GATES = {"lstm": 4, "gru": 3}


def _attends(model: ModelConfig) -> bool:
    return model.recurrent_attention != "none"


def _layers(model: ModelConfig) -> Iterator[tuple[str, int, int, int]]:
    """(side, inputs, units, cells side by side) of every layer.

    A decoder layer that is given a context reads it as inputs.
    """
    ways, size = 1 + _attends(model), model.d_model
    for _ in range(model.num_layers):
        yield "source", size, size // ways, ways
        yield "target", ways * size, size, 1


def _attention_products(model: ModelConfig) -> tuple[int, int]:
    """Numbers in the kernels that a source, and a target, position is multiplied by.

    The keys' kernel; that of the query and that of the readout.
    """
    square = model.d_model**2 * _attends(model)
    return square, square + 2 * square


def parameter_counts(model: ModelConfig) -> dict[str, int]:
    """Trained numbers of all but the embeddings, by group."""
    gates = GATES[model.recurrent_cell]
    hidden_bias = model.recurrent_cell == "gru"
    recurrence = sum(
        ways * (gates * units * (inputs + units + 1) + hidden_bias * units)
        for _, inputs, units, ways in _layers(model)
    )
    keys, queries = _attention_products(model)
    vector_and_bias = 2 * model.d_model * _attends(model)
    return {"recurrence": recurrence, "attention": keys + queries + vector_and_bias}


def forward_flops(
    model: ModelConfig, source_tokens: float, target_tokens: float, pairs: float
) -> float:
    """Operations of the matrix products, without those of the logits.

    ``pairs`` are those of a target and a source position of one row. An attention's
    score is a product with the vector, and its hyperbolic tangents are not counted.
    """
    gates = GATES[model.recurrent_cell]
    of_source, of_target = _attention_products(model)
    for side, inputs, units, ways in _layers(model):
        products = ways * gates * units * (inputs + units)
        if side == "source":
            of_source += products
        else:
            of_target += products
    attention = 2 * model.d_model * pairs * _attends(model)
    return 2 * (source_tokens * of_source + target_tokens * of_target + attention)


def kept_values(model: ModelConfig, length: float) -> float:
    """Numbers kept for the backward pass, of a source and a target position together.

    Of a cell: its sums before and behind their functions, its input, and its state
    before, behind and as a sum. Of attention: weights, keys, context, query, readout.
    """
    gates = GATES[model.recurrent_cell]
    cells = sum(
        ways * units * (2 * gates + 4) + inputs
        for _, inputs, units, ways in _layers(model)
    )
    return cells + _attends(model) * (2 * length + 6 * model.d_model)
