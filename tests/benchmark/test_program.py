"""Programs: operations and loops against hand arithmetic and unrolled twins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.benchmark.program import (
    compiled,
    sequential_steps,
    steps_of,
)
from transformer_ablation.model.layer_types import drawn, of_width, whole_layer


def product_chain(length):
    def run(x, kernel):
        return jax.lax.scan(lambda x, _: (x @ kernel, None), x, None, length=length)[0]

    return run


def test_loop_counts_as_often_as_it_runs():
    """Seven products of [3, 5] and [5, 5]: 7 * 2 * 3 * 5 * 5 operations."""
    x, kernel = np.ones((3, 5), "float32"), np.ones((5, 5), "float32")
    found = compiled(product_chain(7), x, kernel)
    # The loop's counter is one operation a step or two.
    assert found.flops == pytest.approx(7 * 150, abs=3 * 7)
    assert found.sequential == 7
    np.testing.assert_allclose(found.run(x, kernel), x @ kernel * 5**6)


def test_memory_has_the_largest_array_and_what_is_given():
    """Weights of all pairs, 256 * 256 numbers of 4 bytes, also within a loop."""

    def attention(x, _):
        return jax.nn.softmax(x @ x.T) @ x, None

    x = np.ones((256, 4), "float32")
    once = compiled(lambda x: attention(x, None)[0], x)
    loop = compiled(lambda x: jax.lax.scan(attention, x, None, length=3)[0], x)
    assert 2**18 <= once.memory < 2**20 and 2**18 <= loop.memory < 2**20
    # An input of 4 MiB and as large an output; none between is larger.
    whole = compiled(lambda x: x + 1, np.ones(2**20, "float32"))
    assert whole.memory == 2 * 2**22


def test_loop_within_a_loop_multiplies():
    inner = product_chain(3)

    def outer(x, kernel):
        def step(x, _):
            return inner(x, kernel) @ kernel, None

        return jax.lax.scan(step, x, None, length=5)[0]

    x, kernel = np.ones((3, 5), "float32"), np.ones((5, 5), "float32")
    found = compiled(outer, x, kernel)
    assert found.flops == pytest.approx(5 * 4 * 150, abs=3 * 5 * 4)
    assert found.sequential == 15


def test_loop_counts_as_its_unrolled_twin(base_config):
    """An LSTM of 6 steps beside 6 cells written out: the same operations."""
    from transformer_ablation.config import of_architecture, replace
    from transformer_ablation.model import recurrence

    model = of_width(replace(base_config, of_architecture("recurrent")).model, 8)
    layer = whole_layer(model)
    parameters, (x_BLD,) = drawn((layer.parameters, layer.inputs(1, 6)))
    cell = recurrence.RecurrentLayer("lstm", 8, 8, "float32")

    def written_out(parameters, x_BLD):
        def step(state, x_BCD):
            return cell.apply(parameters, x_BCD, state, method="step")

        state, found = (jnp.zeros((1, 1, 8)), jnp.zeros((1, 1, 8))), []
        for t in range(6):
            state = step(state, x_BLD[:, t : t + 1])
            found.append(state[0])
        return jnp.concatenate(found, axis=1)

    loop = compiled(layer.apply, parameters, x_BLD)
    twin = compiled(written_out, parameters, x_BLD)
    np.testing.assert_allclose(
        loop.run(parameters, x_BLD), twin.run(parameters, x_BLD), rtol=1e-4, atol=1e-5
    )
    assert (loop.sequential, twin.sequential) == (6, 1)
    # The gates' products of input and state; functions of gates are a tenth of it.
    by_hand = 6 * 2 * (8 + 8) * 4 * 8
    assert by_hand < loop.flops < 1.4 * by_hand
    assert loop.flops == pytest.approx(twin.flops, rel=0.05)


def test_unknown_number_of_steps_is_not_made_up():
    def until(x):
        return jax.lax.while_loop(lambda x: x < 100, lambda x: x * 2, x)

    assert steps_of(until, jnp.float32(1.0)) is None


def test_loops_one_after_the_other_add_up():
    line = (
        "  %w{} = s32[] while(s32[] %p), condition=%c, body=%{}, "
        'backend_config={{"known_trip_count":{{"n":"{}"}}}}'
    )
    head = "(p: s32[]) -> s32[] {"
    text = "\n".join(
        [
            f"%body.1 {head}",
            "  ROOT %a = s32[] add(s32[] %p, s32[] %p)",
            f"}}\n\n%outer.2 {head}",
            line.format(0, "body.1", 4),
            f"}}\n\nENTRY %main.3 {head}",
            line.format(1, "body.1", 5),
            line.format(2, "outer.2", 3),
            "}",
        ]
    )
    assert sequential_steps(text) == 5 + 3 * 4
    assert sequential_steps("ENTRY %main (p: s32[]) -> s32[] {\n}\n") == 1
