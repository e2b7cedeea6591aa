"""Options of a search: what goes together, and what each message names."""

import numpy as np
import pytest

from configs import base
from transformer_ablation.config import ConfigError, from_mapping, replace
from transformer_ablation.runs.errors import RunError
from transformer_ablation.runs.searching import Sampling, choose


@pytest.fixture(scope="module")
def config():
    return replace(from_mapping(base.get_config()), {"decode.beam_size": 5})


def test_beam_is_the_configs_unless_another_is_asked_for(config):
    assert choose(config, n_best=5) == (config, 5, None)
    found = choose(config, beam_size=7, n_best=6)
    assert (found.config.decode.beam_size, found.n_best, found.sampling) == (7, 6, None)


@pytest.mark.parametrize("given", [{}, {"beam_size": 1}])
def test_greedy_is_a_beam_of_one(config, given):
    found = choose(config, greedy=True, **given)
    assert found == choose(config, beam_size=1)


def test_draws_are_as_many_as_translations_asked_for(config):
    found = choose(config, sample=True)
    assert found.sampling == Sampling(0, 1.0, None) and found.n_best == 1
    found = choose(
        config, sample=True, n_best=9, temperature=2, top_k=3, seed=2**31 - 1
    )
    assert found.sampling == (2**31 - 1, 2.0, 3)
    assert (found.n_best, found.config.decode.beam_size) == (9, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"greedy": True, "sample": True}, "--greedy and --sample: give one"),
        ({"greedy": True, "beam_size": 4}, "--beam_size=4: --greedy has no beam"),
        ({"sample": True, "beam_size": 1}, "--beam_size=1: --sample has no beam"),
        ({"greedy": True, "n_best": 2}, "--n_best=2: --greedy finds one"),
        ({"temperature": 0.5}, "--temperature=0.5: only draws at random"),
        ({"greedy": True, "top_k": 5}, "--top_k=5: only draws at random"),
        ({"seed": 0}, "--seed=0: only draws at random have it; add --sample"),
        ({"n_best": 6}, "--n_best=6: it must be from 1 to the beam size, 5"),
        ({"n_best": 0}, "--n_best=0: it must be from 1 to the beam size, 5"),
        ({"n_best": "2"}, "--n_best='2': it must be a whole number"),
        ({"n_best": True}, "--n_best=True: it must be a whole number"),
        ({"beam_size": 1.5}, "--beam_size=1.5: it must be a whole number"),
        ({"sample": True, "n_best": 0}, "--n_best=0: it must be from 1 to 1024"),
        ({"sample": True, "temperature": 0.0}, "--temperature=0.0: .* 0.001 to 1000"),
        ({"sample": True, "temperature": -1}, "--temperature=-1: .* is --greedy"),
        ({"sample": True, "temperature": float("nan")}, "--temperature=nan"),
        ({"sample": True, "temperature": "hot"}, "--temperature=hot"),
        ({"sample": True, "top_k": 0}, "--top_k=0: it must be from 1 to"),
        ({"sample": True, "seed": -1}, "--seed=-1: it must be from 0 to 2147483647"),
        ({"sample": True, "seed": 2**31}, "--seed=2147483648"),
        ({"sample": True, "seed": 1.5}, "--seed=1.5: it must be a whole number"),
    ],
)
def test_what_may_not_be_is_one_message(config, options, message):
    with pytest.raises(RunError, match=message):
        choose(config, dash="--", **options)


def test_names_are_those_of_arguments_without_dashes(config):
    with pytest.raises(RunError, match="^seed=0: only .* add sample$"):
        choose(config, seed=0)


def test_beam_that_may_not_be_is_the_fields_own_message(config):
    with pytest.raises(ConfigError, match="decode.beam_size: 0 is not allowed"):
        choose(config, beam_size=0)


def test_numbers_of_arrays_are_numbers(config):
    """As they come out of a table or an array."""
    found = choose(config, beam_size=np.int64(7), n_best=np.int64(6))
    assert found == choose(config, beam_size=7, n_best=6)
    assert type(found.n_best) is int
    drawn = choose(
        config, sample=True, seed=np.int32(3), temperature=np.float32(0.5), n_best=2
    )
    assert drawn.sampling == (3, 0.5, None) and type(drawn.sampling.seed) is int
