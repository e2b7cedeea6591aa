"""Medians by hand, and calls counted on a clock that only the calls move."""

import pytest

from transformer_ablation.benchmark import timing


class FakeClock:
    """Time passes only in ``work``."""

    def __init__(self):
        self.now = 100.0
        self.log = []

    def __call__(self):
        return self.now

    def work(self, name, *seconds):
        """A call that takes the seconds of its turn, the last of them for ever."""
        left = list(seconds)

        def call():
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock():
    return FakeClock()


def test_spread_of_five_values():
    # In order 1 2 4 7 16: the middle one, and the middles of both halves.
    found = timing.spread([7.0, 1.0, 16.0, 4.0, 2.0])
    assert found == timing.Spread(5, 4.0, 2.0, 7.0, 1.0, 16.0)


def test_spread_of_an_even_number_lies_between_two():
    assert timing.spread([1.0, 2.0, 3.0, 10.0]).median == 2.5


def test_spread_of_one_value_is_that_value():
    assert timing.spread([3.0]) == timing.Spread(1, 3.0, 3.0, 3.0, 3.0, 3.0)


def test_spread_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no value"):
        timing.spread([])


def test_calls_are_repeated_until_the_time_is_up(clock):
    times = timing.repeat(clock.work("a", 0.5), 1.75, least=2, clock=clock)
    assert times == [0.5] * 4  # three leave a quarter of a second


def test_slow_call_is_repeated_all_the_same(clock):
    assert timing.repeat(clock.work("a", 9.0, 8.0), 1.0, 3, clock) == [9.0, 8.0, 8.0]


def test_work_in_turn_alternates_and_keeps_times_apart(clock):
    calls = [clock.work("a", 1.0), clock.work("b", 2.0, 3.0, 4.0)]
    assert timing.in_turn(calls, 0.1, 3, clock) == [[1.0] * 3, [2.0, 3.0, 4.0]]
    assert clock.log == ["a", "b"] * 3


def test_ratios_are_those_of_each_round():
    # The machine is half as fast in the second round: no ratio tells of it.
    found = timing.ratios([3.0, 6.0, 3.0], [2.0, 4.0, 1.0])
    assert (found.median, found.smallest, found.largest) == (1.5, 1.5, 3.0)


def test_rounds_that_do_not_match_are_an_error():
    with pytest.raises(ValueError):
        timing.ratios([1.0, 2.0], [1.0])
