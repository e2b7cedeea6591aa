"""Half precision in an update: what is summed, and what the update does in place."""

import jax
import pytest

from tests.train.tiny_training import VOCABULARY, WITH, arrange, make_batch, make_config
from transformer_ablation import parallel
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, EOS, PAD

HALF = {"model.projection_biases": True}
SUMS = ("reduce_sum", "cumsum", "psum", "scatter-add", "reduce_and", "logsumexp")
# Functions whose values lose most in half precision.
SENSITIVE = ("exp", "log", "rsqrt", "div", "square", "sqrt", "integer_pow")


def update_of(config):
    """The update as it is before it is mapped over devices."""
    model = Transformer(config.model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "map_update", lambda update: update)
        call = steps.make_update(model, config)
    (update,) = (c.cell_contents for c in call.__closure__)
    return update, steps.state_shapes(model, config)


def equations(jaxpr):
    """Those of a jaxpr and of all inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            parts = value if isinstance(value, tuple | list) else [value]
            for part in parts:
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    yield from equations(part)


def types_of(equation):
    variables = [*equation.invars, *equation.outvars]
    return {str(v.aval.dtype) for v in variables if hasattr(v.aval, "dtype")}


@pytest.mark.parametrize(("norm", "dtype"), [("post", "bfloat16"), ("pre", "float16")])
def test_no_sum_and_no_softmax_is_of_half_precision(norm, dtype):
    """In the jaxpr of the whole update: products alone, and what is elementwise."""
    fields = {"model.norm": norm, "model.dtype": dtype, **HALF}
    config = make_config(
        {
            "model.num_layers": 1,
            "optimizer.accumulation_steps": 2,
            "optimizer.clip_norm": 1.0,
            **fields,
        }
    )
    update, state = update_of(config)
    batch = arrange(make_batch(), 2, 2)
    shards = tuple(
        jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in (batch.source, batch.target)
    )
    key = jax.eval_shape(lambda: steps.purpose_key(0, steps.DROPOUT))
    traced = jax.make_jaxpr(update, axis_env=[(parallel.AXIS, 2)])
    found = list(equations(traced(state, shards, key, WITH).jaxpr))
    names = {equation.primitive.name for equation in found}
    assert {"reduce_sum", "exp", "rsqrt", "dot_general", "scan"} <= names
    assert any(dtype in types_of(equation) for equation in found)
    half = {
        equation.primitive.name
        for equation in found
        if equation.primitive.name in (*SUMS, *SENSITIVE)
        and dtype in types_of(equation)
    }
    assert half == set()


def test_state_is_updated_in_place(start, update):
    """Its buffers are given up for the new ones, so it stands in memory once."""
    state = parallel.replicate(start)
    key = steps.purpose_key(3, steps.DROPOUT)
    update(state, arrange(make_batch(), parallel.device_count()), key, WITH)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
