"""The plain-Python reference of expressions and the functions' kernels say the same, function by function.

Two programs written apart: brute-force tests of executors and of privacy lean on the one to judge the other.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from dpsql.executors import base as _base  # noqa: F401 - it says what matches patterns
from dpsql.plan.domains import cells_of, vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Fact, Function, Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.calendar import DAYS, MICROSECONDS, day_number, microsecond_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval
from tests.executors.pandas import reference

MOST_ROWS = 400
SAMPLES: dict[Type, list[Any]] = {
    Type.INTEGER: [None, 0, 1, -1, 2, 7, -13, 120, 200, 40_000, -(2**31), 2**40],
    Type.REAL: [None, 0.0, 0.5, -0.5, 1.0, 2.5, -2.5, 99.75, -1e3, 1e12, math.inf, -math.inf],
    Type.BOOLEAN: [None, True, False],
    Type.TEXT: [
        None, "", "a", " Abc ", "a%b_c", "12", "-3.5", "1e2", "true", "No", "Straße", "日本", "2020-02-29", "x\\%",
    ],
    Type.DATE: [None, *(day_number(date(*each)) for each in ((1970, 1, 1), (2020, 2, 29), (1999, 12, 31), (1, 1, 1)))],
    Type.TIMESTAMP: [
        None,
        *(
            microsecond_number(datetime(*each))
            for each in ((1970, 1, 1), (2020, 2, 29, 12, 30, 15, 250_000), (1999, 12, 31, 23, 59, 59), (9999, 12, 31))
        ),
    ],
}  # fmt: skip
RANGES = {
    Type.INTEGER: Interval(-(2**31), 2**40),
    Type.BOOLEAN: Interval(0, 1),
    Type.DATE: DAYS,
    Type.TIMESTAMP: MICROSECONDS,
}
CONSTANTS = {"in": 1, "to_decimal": 1, "text_to_decimal": 1}
"""From this argument on they take constants only."""
INEXACT = ("cbrt", "sin", "cos", "tan", "exp", "ln", "log10", "log2", "log_base", "power", "degrees", "radians")


def uses() -> Iterator[tuple[Function, tuple[Type, ...]]]:
    """Every function with each list of up to three types that it takes."""
    for function in FUNCTIONS.values():
        least, most = function.arity
        for size in range(least, min(3 if most is None else most, 3) + 1):
            for kinds in itertools.product(SAMPLES, repeat=size):
                if typed(function, kinds) is not None:
                    yield function, kinds


def typed(function: Function, kinds: Sequence[Type], constants: Sequence[Any] = ()) -> Expr | None:
    """The call of columns a, b, ...; the last arguments are the constants."""
    args: list[Expr] = [
        Column(name, kind, Fact(RANGES.get(kind, EVERYTHING))) for name, kind in zip("abc", kinds, strict=False)
    ]
    start = CONSTANTS.get(function.name, len(args))
    fillers = [2 if kind is Type.INTEGER else SAMPLES[kind][1] for kind in kinds[start:]]
    for place, value in enumerate(constants or fillers):
        args[start + place] = Literal(value, kinds[start + place])
    return call(function, *args)


def rows_of(kinds: Sequence[Type], rng: random.Random) -> list[tuple[Any, ...]]:
    rows = list(itertools.product(*(SAMPLES[kind] for kind in kinds)))
    return rows if len(rows) <= MOST_ROWS else rng.sample(rows, MOST_ROWS)


def alike(name: str, ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and name in INEXACT:
        return math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-300)
    return type(ours) is type(theirs) and bool(ours == theirs)


USES = list(uses())


@pytest.mark.parametrize(("function", "kinds"), USES, ids=[f"{each}-{'-'.join(kinds)}" for each, kinds in USES])
def test_kernel_and_reference_agree(function: Function, kinds: tuple[Type, ...]):
    rng = random.Random(f"{function}{kinds}")
    trials: list[Sequence[Any]] = [()]
    if function.name == "in":
        trials = [[rng.choice(SAMPLES[kind]) for kind in kinds[1:]] for _ in range(6)]
    elif function.name in CONSTANTS:
        trials = [(4, 0), (5, 2), (18, 3)]
    for constants in trials:
        expr = typed(function, kinds, constants)
        assert isinstance(expr, Call)
        rows = rows_of(kinds, rng) if kinds else [()]
        cells = [dict(zip("abc", row, strict=False)) for row in rows]
        found = evaluate(
            expr, lambda column, cells=cells: vector_of([row[column.name] for row in cells], column.type), len(rows)
        )
        for row, ours in zip(cells, cells_of(found, expr.type), strict=True):
            theirs = reference.value(expr, row)
            assert alike(function.name, ours, theirs), f"{expr} of {row}: {ours!r}, but {theirs!r} by reference"


def test_every_function_is_tried():
    assert {function.name for function, _kinds in USES} == set(FUNCTIONS)
    assert len(np.unique([str(use) for use in USES])) == len(USES)
