"""Every function of numbers gives what DuckDB gives, to the last bit, on the values at which rounding decides.

These are ties and their neighbours (0.15, 0.285, 2.675), halves beyond 2^52, denormals, the ends of the floats, -0.0,
and digits before and after the point up to where powers of ten overflow. The functions that no library rounds
correctly (`row_local.INEXACT`) are compared to a few units in the last place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dpsql.plan.expressions import Call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.row_local import INEXACT
from dpsql.schema.columns import Type
from tests.plan.records import ULPS, Arg, Use, as_number, column, computed, rows_of, typed
from tests.plan.samples import LARGEST
from tests.plan.test_function_records import USES

TIES = [0.15, 0.25, 0.285, 0.35, 0.45, 1.005, 1.15, 2.675, 927.05, 0.045, 551.015, 14.5, 0.5, 1.5, 2.5, 5e-13, 0.615]
SPECIAL = [
    0.0, 0.49999999999999994, 1e15 + 0.5, 1e15 - 0.5, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**53, 2.0**62, 2.0**63, 5e-324,
    2.2250738585072014e-308, 1e-300, 1e22, 1e23, 5e22, 1e300, 1.5e308, 1.7976931348623157e308, math.inf, 15.0, 250.0,
    3.4028235677973366e38, 16777217.0, 2147483647.5, 127.5, 1e-5,
]  # fmt: skip
"""More ties are made of these: numbers and a half, over powers of ten."""


def reals() -> list[float]:
    draw = random.Random(18)
    made = [(draw.randrange(10 ** draw.randint(1, 7)) + 0.5) / 10.0**digits for digits in range(23) for _ in range(4)]
    near = [math.nextafter(each, end) for each in [*TIES, *made] for end in (-math.inf, math.inf)]
    return [sign * each for each in [*TIES, *SPECIAL, *made, *near] for sign in (1, -1)]


INTEGERS = [
    sign * each
    for each in (
        0,
        1,
        4,
        5,
        6,
        15,
        25,
        49,
        50,
        51,
        127,
        128,
        2**31,
        2**53 + 1,
        5 * 10**17,
        10**18,
        2**62 - 1,
        2**62,
        5 * 10**18,
        2**63 - 1,
    )
    for sign in (1, -1)
]
DIGITS = [*range(-24, 25), 30, 100, 307, 308, 309, 310, 400, -30, -100, -307, -308, -309, -400, 2**40, -(2**40), None]
REALS = reals()
FIRST = {Type.REAL: [*REALS, None], Type.INTEGER: [*INTEGERS, None]}
OTHERS = {Type.REAL: [*TIES[:6], *SPECIAL, -0.0, -2.5, None], Type.INTEGER: [*INTEGERS[:8], LARGEST, 22, 23, None]}
ARROW = {Type.REAL: pa.float64(), Type.INTEGER: pa.int64()}

NUMERIC = [use for use in USES if use.kinds and all(kind in ARROW for kind in use.kinds) and len(use.kinds) < 4]


def arguments(use: Use) -> list[list[Arg]]:
    """Columns of the edges; constants where a function takes constants only, or a number of digits."""
    name, first = use.function.name, column(use.kinds[0], FIRST[use.kinds[0]])
    if name == "to_decimal":
        sizes = [(4, 1), (9, 2), (18, 3), (18, 0), (15, 2), (38, 0), (38, 10), (38, 22), (38, 23), (38, 30), (38, 38)]
        return [[first, *(Arg(Type.INTEGER, (size,)) for size in each)] for each in sizes]
    if name == "in":
        return [[first, *(Arg(kind, (2 if kind is Type.INTEGER else 2.5,)) for kind in use.kinds[1:])]]
    if name in ("round", "trunc") and len(use.kinds) == 2:
        return [[first, column(Type.INTEGER, DIGITS)], *([first, Arg(Type.INTEGER, (each,))] for each in DIGITS[::6])]
    few = 6 if len(use.kinds) > 2 else None
    return [
        [
            column(use.kinds[0], FIRST[use.kinds[0]][:: few or 1]),
            *(column(kind, OTHERS[kind][:: few or 1]) for kind in use.kinds[1:]),
        ]
    ]


def in_duckdb(text: str, names: Sequence[str], args: Sequence[Arg], kind: Type) -> list[Any]:
    """DuckDB's results for the same rows."""
    columns = [[row[place] for row in rows_of(args)] for place in range(len(args))]
    arrays = {
        f"a{place}": pa.array(cells, ARROW[arg.kind])
        for place, (cells, arg) in enumerate(zip(columns, args, strict=True))
    }
    table = pa.table({"k": pa.array(range(len(columns[0])), pa.int64()), **arrays})
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("edges", table)
        found = connection.execute(f"SELECT {as_number(kind, text)} FROM edges ORDER BY k").fetchall()
    return [cell for (cell,) in found]


def is_same(name: str, ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return type(ours) is type(theirs) and bool(ours == theirs)
    if ours == theirs:
        return math.copysign(1, ours) == math.copysign(1, theirs)
    return name in INEXACT and math.isfinite(theirs) and abs(ours - theirs) <= ULPS[name] * math.ulp(ours)


def wrong(use: Use, expr: Call, args: Sequence[Arg], text: str) -> list[str]:
    rows = rows_of(args)
    theirs = in_duckdb(text, [f"a{place}" for place in range(len(args))], args, expr.type)
    return [
        f"{expr} of {row} is {mine!r}, in DuckDB {other!r}"
        for row, mine, other in zip(rows, computed(expr, rows), theirs, strict=True)
        if not is_same(use.function.name, mine, other)
    ]


@pytest.mark.parametrize("use", NUMERIC, ids=str)
def test_the_record_is_what_duckdb_computes(use: Use):
    tried = 0
    for args in arguments(use):
        expr = typed(use, args)
        if expr is None:
            continue
        tried += 1
        written = [f"a{place}" if arg.fact is not None else str(arg.cells[0]) for place, arg in enumerate(args)]
        text = use.function.emit(list(use.kinds), expr.type, ["NULL" if each == "None" else each for each in written])
        found = wrong(use, expr, args, text)
        assert not found, f"{len(found)} of {len(rows_of(args))}: " + "; ".join(found[:6])
    assert tried


OWN = {"round": "ROUND(a0, CAST(a1 AS INTEGER))", "trunc": "TRUNC(a0, CAST(a1 AS INTEGER))"}


@pytest.mark.parametrize("name", OWN)
def test_digits_are_those_of_duckdbs_own_function(name: str):
    """What an analyst would write in DuckDB, with no text of ours around it."""
    digits = [each for each in DIGITS if each is None or abs(each) < 2**31]
    use = Use(FUNCTIONS[name], (Type.REAL, Type.INTEGER))
    args = [column(Type.REAL, FIRST[Type.REAL]), column(Type.INTEGER, digits)]
    expr = typed(use, args)
    assert expr is not None
    found = wrong(use, expr, args, OWN[name])
    assert not found, "; ".join(found[:6])


def test_the_edges_see_a_scaled_value_rounded_twice():
    """0.15 * 10 is 1.5 as a float: rounding that, as engines did before, is seen."""
    assert {0.15, 2.675, 927.05} <= set(REALS)
    twice = [each for each in REALS if abs(each) < 1e9 and math.floor(abs(each) * 10 + 0.5) / 10 != abs(round(each, 1))]
    assert len(twice) > 10


def test_every_function_of_numbers_is_compared():
    assert {"round", "trunc", "floor", "ceil", "to_decimal", "to_bigint", "real_to_text", "int_divide", "modulo"} <= {
        use.function.name for use in NUMERIC
    }
    assert len(list(product(REALS, DIGITS))) > 20_000
