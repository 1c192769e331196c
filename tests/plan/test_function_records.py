"""Every function of the language, by its record alone: kernel, facts and SQL must say the same thing.

For each function and each mix of argument types that it takes, over values of every kind: the kernel fails and warns on
none, its results lie where the fact says and are NULL only where it allows, and DuckDB makes the same of the SQL.

DPSQL_EXAMPLES=100 tries so many ranges, and mixes of constants, of each instead of the default.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dpsql.plan.expressions import Call, Column, Fact, Function, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions import regular_expressions as regular
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, Interval, point
from tests.plan.records import (
    Arg,
    Use,
    check,
    check_fact,
    column,
    computed,
    grid,
    rows_of,
    typed,
    with_constants,
)
from tests.plan.samples import FULL, KINDS, LARGEST, NARROW, POSITIVE, SAMPLES, randoms

EXAMPLES = int(os.environ.get("DPSQL_EXAMPLES", "12"))

OF_CONSTANTS = ("in", "to_decimal", "text_to_decimal")
"""What takes constants only, after its first argument."""


def uses() -> Iterator[Use]:
    for function in FUNCTIONS.values():
        if function in regular.FUNCTIONS:  # their patterns are constants that are checked first: test_regular.py
            continue
        least, most = function.arity
        for arity in range(least, (max(least, 2) + 1 if most is None else most) + 1):
            taken = [use for kinds in product(KINDS, repeat=arity) if (use := Use(function, kinds)) and takes(use)]
            yield from taken if len(taken) <= 36 else random.Random(arity).sample(taken, 36)
    five = (Type.BOOLEAN, Type.INTEGER, Type.BOOLEAN, Type.REAL, Type.INTEGER)
    yield Use(FUNCTIONS["case"], five)
    yield Use(FUNCTIONS["case"], (Type.BOOLEAN, Type.TEXT, Type.BOOLEAN, Type.TEXT, Type.TEXT))


def takes(use: Use) -> bool:
    """Whether the types fit: with nothing known of the values, or with small constants after the first."""
    constants = [Fact(FULL[kind]) if kind is Type.TEXT else Fact(point(4), nullable=False) for kind in use.kinds[1:]]
    unknown = [Fact(FULL[kind]) for kind in use.kinds]
    facts = [*unknown[:1], *constants] if use.function.name in OF_CONSTANTS else unknown
    return use.function.type_of(use.kinds, facts) is not None


USES = list(uses())


OF_COLUMNS = [use for use in USES if use.function.name not in OF_CONSTANTS or len(use.kinds) < 2]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("use", OF_COLUMNS, ids=str)
def test_every_mix_of_samples(use: Use):
    for ranges in ({}, NARROW, POSITIVE):
        assert check(use, grid(use, ranges, nullable=True))
        assert check(use, grid(use, ranges, nullable=False))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("use", [use for use in USES if len(use.kinds) > 1], ids=str)
def test_constants(use: Use):
    draw = random.Random(str(use))
    times = 3 * EXAMPLES if use.function.name in OF_CONSTANTS else EXAMPLES // 2
    tried = [check(use, with_constants(use, draw)) for _ in range(times)]
    assert any(tried)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("use", [use for use in USES if len(use.kinds) == 1], ids=str)
def test_random_values_of_one_argument(use: Use):
    assert check(use, [column(use.kinds[0], randoms(use.kinds[0]))])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("use", [use for use in OF_COLUMNS if len(use.kinds) == 2], ids=str)
def test_random_values_of_two_arguments(use: Use):
    draw = random.Random(str(use))
    args = [column(kind, draw.sample(randoms(kind), min(50, len(randoms(kind))))) for kind in use.kinds]
    assert check(use, args)


@pytest.mark.parametrize("use", OF_COLUMNS, ids=str)
def test_single_values(use: Use):
    """Facts of one value each: the result is computed, and typed, for it alone."""
    draw = random.Random(str(use))
    taken = 0
    for _ in range(60):
        row = tuple(draw.choice((*SAMPLES[kind][1:], *randoms(kind))) for kind in use.kinds)
        exact = [
            point(cell) if kind is not Type.TEXT else EVERYTHING for kind, cell in zip(use.kinds, row, strict=True)
        ]
        args = [Arg(kind, (cell,), Fact(held, nullable=False))
                for kind, cell, held in zip(use.kinds, row, exact, strict=True)]  # fmt: skip
        expr = typed(use, args)
        if expr is not None:
            taken += 1
            check_fact(expr, [row], computed(expr, [row]))
    assert taken


@pytest.mark.parametrize("use", [use for use in USES if use.kinds], ids=str)
def test_no_rows(use: Use):
    draw = random.Random(str(use))
    if not use.kinds:
        return
    tried = [
        typed(use, args) for args in (grid(use, {}, nullable=True), *(with_constants(use, draw) for _ in range(9)))
    ]
    taken = [expr for expr in tried if expr is not None]
    assert taken
    for expr in taken:
        assert computed(expr, []) == []


numbers = st.one_of(st.integers(-20, 20), st.integers(-LARGEST, LARGEST), st.integers(-(2**63), 2**63 - 1))
floats = st.one_of(
    st.floats(-100, 100), st.floats(allow_nan=False), st.sampled_from([c for c in SAMPLES[Type.REAL] if c is not None])
)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INTEGER: numbers,
    Type.REAL: floats,
    Type.BOOLEAN: st.booleans(),
    Type.TEXT: st.one_of(st.sampled_from(SAMPLES[Type.TEXT][1:]), st.text(st.characters(codec="utf-8"), max_size=6)),
    Type.DATE: st.integers(int(DAYS.lower), int(DAYS.upper)),
    Type.TIMESTAMP: st.integers(int(MICROSECONDS.lower), int(MICROSECONDS.upper)),
}


@st.composite
def sub_interval(draw: st.DrawFn, kind: Type) -> Arg:
    """A range between two values, and some values in it, both ends among them."""
    nullable = draw(st.booleans())
    drawn = draw(st.lists(VALUES[kind], min_size=2, max_size=5))
    held = EVERYTHING if kind is Type.TEXT else BOOLEAN if kind is Type.BOOLEAN else Interval(min(drawn), max(drawn))
    return Arg(kind, (*drawn, None) if nullable else tuple(drawn), Fact(held, nullable))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("use", [use for use in OF_COLUMNS if use.kinds], ids=str)
def test_facts_of_sub_intervals(use: Use):
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
              suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
    @given(st.tuples(*(sub_interval(kind) for kind in use.kinds)))
    def hold(args: tuple[Arg, ...]) -> None:
        expr = typed(use, args)
        if expr is not None:
            rows = rows_of(args)
            check_fact(expr, rows, computed(expr, rows))

    hold()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_written(name: str):
    """The record is found by its name, says what it wants, and can be shown."""
    function = FUNCTIONS[name]
    assert function.name == name
    assert function.sql
    assert function.wants
    least, most = function.arity
    assert 0 <= least <= (least if most is None else most)
    arity = least if least % 2 or most is not None else least + 1
    args = tuple(Column(f"arg{place}", Type.INTEGER, Fact()) for place in range(arity))
    shown = str(Call(function, args, Type.INTEGER, Fact(), 1, False, 0))
    written = 1 if name == "of_steps" else arity  # the length of a step follows from what is counted
    assert all(f"arg{place}" in shown for place in range(written))
    assert "{" not in shown


def test_case_is_shown_as_sql():
    b, x = Column("b", Type.BOOLEAN, Fact()), Column("x", Type.INTEGER, Fact())
    test = call(FUNCTIONS["gt"], x, Literal(1, Type.INTEGER))
    assert test is not None
    expr = call(FUNCTIONS["case"], test, x, b, Literal(2, Type.INTEGER), Literal(None, Type.INTEGER))
    assert str(expr) == "CASE WHEN x > 1 THEN x WHEN b THEN 2 ELSE NULL END"


def test_spellings_are_of_the_parser_and_of_one_function_each():
    seen: dict[str, str] = {}
    for function in FUNCTIONS.values():
        for written in function.syntax:
            node, _, rest = written.partition("(")
            assert seen.setdefault(node, function.name) == function.name, f"{node} is written for two functions"
            if not rest:
                assert node == node.upper(), written
                continue
            known = getattr(exp, node).arg_types
            names = [part.strip().lstrip("*") for part in rest.rstrip(")").split(",") if part.strip()]
            assert set(names) <= set(known), f"{written}: the parser has {list(known)}"


def test_the_harness_sees_a_wrong_kernel():
    """A kernel that is off by one, one that makes NULL, and a range that is too narrow are each caught."""
    right = FUNCTIONS["add"]
    args = grid(Use(right, (Type.INTEGER, Type.INTEGER)), NARROW, nullable=False)
    broken = {
        "in DuckDB": {"sql": "{0} + {1} + 1"},
        "is NULL": {"kernel": lambda _kind, v: Vector(v[0].values, v[0].values > 0)},
        "not in": {"fact_of": lambda _facts: Fact(Interval(0, 5), nullable=False)},
    }
    for words, change in broken.items():
        fields = {name: getattr(right, name) for name in right.__dataclass_fields__}
        wrong = Function(**{**fields, **change})  # type: ignore[arg-type]
        with pytest.raises(AssertionError, match=words):
            check(Use(wrong, (Type.INTEGER, Type.INTEGER)), args)
