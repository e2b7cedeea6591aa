"""A compiled program: its operations and the longest chain of its loops' steps.

XLA counts the body of a loop once, however often it runs. Here it is counted as often:
to XLA's count of the whole program is added, for every loop over a known number of
steps, XLA's count of the body alone, compiled by itself, for each step but the first.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax.extend import core

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_CALLED = re.compile(r"(?:body|calls|to_apply)=%?([\w.-]+)")
_STEPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


class Program(NamedTuple):
    """``run(*arguments)`` is the compiled function.

    ``sequential`` is 1 without a loop; None where the compiler does not know how
    often one runs. ``memory``, in bytes, is what the compiler counts of arguments,
    results and what is between, or the largest array of the function if that is more:
    on a CPU what a fused product of attention takes is not counted.
    """

    run: Callable[..., Any]
    flops: float
    sequential: int | None
    memory: int = 0


def compiled(function: Callable[..., Any], *arguments: Any) -> Program:
    """The program of a function for arguments of these shapes."""
    found = jax.jit(function).lower(*arguments).compile()
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    flops = _counted(found) + sum(_repeated(jaxpr))
    memory = max(_memory(found), _largest(jaxpr))
    return Program(found, flops, sequential_steps(found.as_text()), memory)


def _counted(program: Any) -> float:
    costs = program.cost_analysis()
    costs = costs[0] if isinstance(costs, list) else costs
    return float(costs.get("flops", 0.0))


def _memory(program: Any) -> int:
    sizes = program.memory_analysis()
    parts = ("argument", "output", "temp")
    return sum(getattr(sizes, f"{part}_size_in_bytes", 0) for part in parts)


def _largest(jaxpr: Any) -> int:
    """Bytes of the largest array that any of a function's steps makes."""
    inner = (each for equation in jaxpr.eqns for each in _inside(equation.params))
    within = max((_largest(each.jaxpr) for each in inner), default=0)
    made = (v.aval for equation in jaxpr.eqns for v in equation.outvars)
    return max([within, *(each.size * each.dtype.itemsize for each in made)])


def _repeated(jaxpr: Any) -> Iterator[float]:
    """Operations of each loop's steps but the first, inner loops included."""
    for equation in jaxpr.eqns:
        for inner in _inside(equation.params):
            if equation.primitive.name == "scan":
                again = sum(_repeated(inner.jaxpr))
                steps = equation.params["length"]
                yield again + (steps - 1) * (_of_body(inner) + again)
            else:
                yield from _repeated(inner.jaxpr)


def _of_body(body: Any) -> float:
    given = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in body.jaxpr.invars
    ]
    return _counted(_quickly(core.jaxpr_as_fun(body), *given))


def steps_of(function: Callable[..., Any], *shapes: Any) -> int | None:
    """``sequential_steps`` of a function that is not run."""
    return sequential_steps(_quickly(function, *shapes).as_text())


def _quickly(function: Callable[..., Any], *shapes: Any) -> Any:
    """Compiled to be looked at: without what makes machine code fast."""
    quick = {"xla_backend_optimization_level": 0}
    return jax.jit(function, compiler_options=quick).lower(*shapes).compile()


def _inside(params: dict[str, Any]) -> Iterator[Any]:
    """The closed programs among an operation's parameters."""
    for value in params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, core.ClosedJaxpr):
                yield each
            elif isinstance(each, core.Jaxpr):
                yield core.ClosedJaxpr(each, ())


def sequential_steps(text: str) -> int | None:
    """Steps of loops that follow on each other, in the text of a compiled program.

    Loops one after the other add up, and a loop within a loop is run at each step.
    1 for a program without loops; None if the number of steps is not written there.
    """
    lines: dict[str, list[str]] = {}
    entry = name = ""
    for line in text.splitlines():
        if start := _COMPUTATION.match(line):
            name = start[2]
            lines[name] = []
            entry = name if start[1] else entry
        elif name:
            lines[name].append(line)
    try:
        return max(1, _steps(entry, lines))
    except _UnknownStepsError:
        return None


class _UnknownStepsError(Exception):
    """A loop whose number of steps is known to nobody before it runs."""


def _steps(name: str, lines: dict[str, list[str]]) -> int:
    found = 0
    for line in lines.get(name, []):
        within = sum(_steps(called, lines) for called in _CALLED.findall(line))
        if " while(" in line:
            known = _STEPS.search(line)
            if known is None:
                raise _UnknownStepsError
            within = int(known[1]) * max(1, within)
        found += within
    return found
