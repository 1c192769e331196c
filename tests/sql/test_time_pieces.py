"""Instants that stand for all of a range: any other instant leads to a combination that one of them has."""

from __future__ import annotations

import random
from datetime import datetime

import numpy as np
import pytest

from dpsql.plan.domains import cells_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.calendar import MICROSECONDS, microsecond_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.time_pieces import sample_instants

PARTS = ["century", "decade", "year", "isoyear", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow",
         "hour", "minute", "second"]  # fmt: skip
UNITS = ["century", "decade", "year", "quarter", "month", "week", "day", "hour", "minute"]


def _applied(name: str, *args: Expr) -> Call:
    made = call(FUNCTIONS[name], *args)
    assert made is not None
    return made


def _number(value: int) -> Literal:
    return Literal(value, Type.INTEGER)


def moved(draw: random.Random, time: Expr) -> Expr:
    for _ in range(draw.choice([0, 0, 1, 2])):
        unit = draw.choice(["year", "quarter", "month", "week", "day", "hour", "minute"])
        time = _applied(f"add_{unit}", time, _number(draw.randint(-40, 40)))
        if draw.random() < 0.2:
            time = _applied("date_to_timestamp", _applied("timestamp_to_date", time))
    return time


def expression(draw: random.Random, time: Expr, instants: list[int]) -> Expr:
    kind = draw.choice(["part", "part", "part", "trunc", "diff", "compare", "date", "text", "name", "null"])
    place = moved(draw, time)
    if kind == "part":
        return _applied(f"extract_{draw.choice(PARTS)}", place)
    if kind == "trunc":
        return _applied("extract_day", _applied(f"trunc_{draw.choice(UNITS)}", place))
    if kind == "diff":
        return _applied(f"diff_{draw.choice(UNITS)}", Literal(draw.choice(instants), Type.TIMESTAMP), place)
    if kind == "compare":
        return _applied(
            draw.choice(["lt", "le", "gt", "ge", "eq"]), place, Literal(draw.choice(instants), Type.TIMESTAMP)
        )
    if kind == "date":
        date = _applied("add_days", _applied("timestamp_to_date", place), _number(draw.randint(-9, 9)))
        return _applied("extract_day_of_date", date)
    if kind == "text":
        length = draw.choice([4, 6, 7, 10, 12, 16])
        return _applied("left", _applied("timestamp_to_text", place), _number(length))
    return _applied("monthname", place) if kind == "name" else _applied("is_null", time)


def combinations(exprs: list[Expr], instants: np.ndarray) -> set[tuple[object, ...]]:
    cells = [cells_of(evaluate(each, lambda _: Vector(instants), len(instants)), each.type) for each in exprs]
    return set(zip(*cells, strict=True))


RANGES = {
    "hours": ("2024-02-28 22:15:07", "2024-03-01 03:00:00"),
    "months": ("2023-11-30 23:59:59.999999", "2025-03-01 00:00:00"),
    "years": ("1999-07-04 12:00:00", "2024-02-29 23:59:59.999999"),
}


def check(seed: int, first: int, last: int) -> bool:
    draw = random.Random(seed)
    time = Column("w", Type.TIMESTAMP, Fact(Interval(first, last)))
    some = sorted(draw.randint(first, last) for _ in range(40))
    exprs = [expression(draw, time, some) for _ in range(draw.choice([2, 2, 3]))]
    found = sample_instants(exprs, time, first, last)
    if found is None:
        return False
    assert first <= found.min()
    assert found.max() <= last
    others = np.random.default_rng(seed).integers(first, last + 1, 5_000)
    near = np.concatenate([found[:1_000] - 1, found[:1_000] + 1, [first, last], some])
    others = np.clip(np.concatenate([others, near]), first, last)
    assert combinations(exprs, others) <= combinations(exprs, found), [*map(str, exprs)]
    return True


@pytest.mark.parametrize("name", RANGES)
def test_every_combination_of_a_range_is_shown_by_an_instant_of_it(name: str):
    first, last = (microsecond_number(datetime.fromisoformat(text)) for text in RANGES[name])
    seeds = 12 if name == "years" else 50
    assert sum(check(seed, first, last) for seed in range(seeds)) > 0.8 * seeds  # some change with every minute


def test_every_combination_of_the_whole_calendar_is_shown():
    """By 400 years of it, where the expressions repeat."""
    time = Column("w", Type.TIMESTAMP, Fact(MICROSECONDS))
    exprs: list[Expr] = [_applied(f"extract_{part}", time) for part in ("month", "quarter", "dayofyear")]
    found = sample_instants(exprs, time, int(MICROSECONDS.lower), int(MICROSECONDS.upper))
    assert found is not None
    assert len(combinations(exprs, found)) == 366 + 10  # from March on a leap day moves the ends of months


def test_a_time_that_is_compared_with_another_is_not_derived():
    time = Column("w", Type.TIMESTAMP, Fact())
    assert sample_instants([_applied("extract_epoch", time)], time, 0, 10**9) is None
