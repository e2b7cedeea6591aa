"""What each architecture does not read, and what it was published with."""

from typing import Any

_OF_TRANSFORMERS = {
    "model.decoder_layers": None,
    "model.d_ff": 1,
    "model.num_heads": 1,
    "model.d_k": 1,
    "model.d_v": 1,
    "model.norm": "post",
    "model.layer_norm_epsilon": 1e-6,
    "model.attention_window": None,
    "model.projection_biases": False,
    "model.attention_implementation": "own",
    "model.rematerialize": "none",
    "regularization.activation_dropout_rate": 0.0,
}
_OF_RECURRENT = {
    "model.recurrent_cell": "lstm",
    "model.recurrent_attention": "none",
    "model.reverse_source": False,
}
_OF_CONVOLUTIONAL = {"model.kernel_width": 3, "model.kernel_dilation": "none"}
# Fields that an architecture does not read, and the only value they may then have: so
# two configs of one model are equal, and no field is varied that changes nothing.
UNREAD: dict[str, dict[str, Any]] = {
    "transformer": {**_OF_RECURRENT, **_OF_CONVOLUTIONAL},
    "recurrent": {
        **_OF_TRANSFORMERS,
        "model.positions": "none",
        "model.compatibility": "scaled_dot",
        "regularization.attention_dropout_rate": 0.0,
        **_OF_CONVOLUTIONAL,
    },
    "convolutional": {**_OF_TRANSFORMERS, **_OF_RECURRENT},
}


# What an architecture was published with and hardly learns without: scores of products
# that are not divided need embeddings as small as these.
PUBLISHED: dict[str, dict[str, Any]] = {
    "convolutional": {
        "model.positions": "learned",
        "model.scale_embeddings": False,
        "model.compatibility": "dot",
    }
}


def of_architecture(name: str) -> dict[str, Any]:
    """``{"section.field": value}`` that makes any config one of an architecture.

    What it does not read, and what it was published with; all else stays as it is. For
    a row, or for ``replace``.
    """
    return {"model.architecture": name, **UNREAD[name], **PUBLISHED.get(name, {})}
