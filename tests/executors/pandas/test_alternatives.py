"""Sums over cells: those of the rows of each, found in plain Python, with alternatives that overlap and may be NULL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.exact import CellPart, CountRows, LatticeProduct, LatticeShare, LatticeSum, Part
from dpsql.plan.expressions import Expr
from dpsql.plan.nodes import Filter
from dpsql.release.release import Release
from tests.core.checks import Shape, U, calibrated, run_exactly

SEED = 23_112_026
SHAPE = Shape(
    {"p": "Int64", "x": "float64", "b": "boolean", "g": "str"},
    {"bounds": {"p": (0, 9), "x": (-1, 1)}, "keys": {"g": ["a", None, "c"]}},
)
CONDITIONS: dict[str, Callable[[Any, Any, Any], bool]] = {
    "p > 4": lambda p, _x, _b: p is not None and p > 4,
    "p > 2": lambda p, _x, _b: p is not None and p > 2,
    "b": lambda _p, _x, b: b is True,
    "x IS NULL": lambda _p, x, _b: x is None,
    "p / 0 > 1": lambda _p, _x, _b: False,
}
"""They overlap: the first that is TRUE has the row."""


def rows_at_random(count: int, seed: int = SEED) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    lists = ([None, *range(-3, 13)], [None, -2.0, -0.5, 0.0, 0.25, 1.0], [None, True, False], ["a", None, "c", "zz"])
    return [tuple(rng.choice(each) for each in lists) for _ in range(count)]


def conditions() -> tuple[Expr, ...]:
    found = []
    for text in CONDITIONS:
        made = calibrated(SHAPE.schema(), f"SELECT COUNT(*) FROM t WHERE {text}", U)
        assert isinstance(made.exact.source, Filter)
        found.append(made.exact.source.predicate)
    return tuple(found)


def parts_of(made: Release) -> tuple[Part, ...]:
    """Counts, sums and squares of a release, as they are."""
    kinds = CountRows | LatticeSum | LatticeProduct | LatticeShare
    return tuple(part for part in made.exact.parts if isinstance(part, kinds))


def in_cells(parts: tuple[Part, ...], given: tuple[Expr, ...]) -> tuple[CellPart, ...]:
    return tuple(CellPart(part, given, number) for number in range(1, len(given) + 1) for part in parts)  # type: ignore[arg-type]


QUERIES = (
    "SELECT COUNT(*), SUM(p), COUNT(x) FROM t",
    "SELECT g, COUNT(*), AVG(x), VAR_POP(p) FROM t GROUP BY g",
    "SELECT g, COUNT(p), SUM(x) FROM t WHERE b OR p > 1 GROUP BY g",
    "SELECT g, CORR(p, x) FROM t GROUP BY g",
)


def check_sums() -> None:
    """Each part in each cell is the same part over the rows of which the cell is the first that is TRUE."""
    given, rows, schema = conditions(), rows_at_random(700), SHAPE.schema()
    for sql in QUERIES:
        made = calibrated(schema, sql, U)
        parts = parts_of(made)
        asked = replace(made, exact=replace(made.exact, parts=in_cells(parts, given)))
        found = run_exactly(asked, schema, SHAPE.frame(rows)).parts.tolist()
        for number in range(len(given)):
            inside = [row for row in rows if first(row) == number + 1]
            plain = replace(made, exact=replace(made.exact, parts=parts))
            exact = run_exactly(plain, schema, SHAPE.frame(inside)).parts.tolist()
            assert found[number * len(parts) : (number + 1) * len(parts)] == exact, (sql, number)


def first(row: tuple[Any, ...]) -> int:
    true = [number for number, holds in enumerate(CONDITIONS.values(), start=1) if holds(*row[:3])]
    return min(true, default=0)


def test_a_cell_has_the_rows_of_which_it_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    check_sums()
    monkeypatch.setattr("dpsql.executors.pandas.executor.BLOCK", 64)
    check_sums()


def test_without_rows_all_cells_are_empty() -> None:
    schema, given = SHAPE.schema(), conditions()
    made = calibrated(schema, QUERIES[1], U)
    asked = replace(made, exact=replace(made.exact, parts=in_cells(parts_of(made), given)))
    assert not run_exactly(asked, schema, SHAPE.frame([])).parts.any()


def test_a_row_is_in_no_two_cells() -> None:
    """However the alternatives overlap: the counts of all cells are no more than the rows."""
    schema, given = SHAPE.schema(), conditions()
    made = calibrated(schema, "SELECT COUNT(*) FROM t", U)
    for row in rows_at_random(60):
        asked = replace(made, exact=replace(made.exact, parts=in_cells((CountRows(None),), given)))
        assert run_exactly(asked, schema, SHAPE.frame([row])).parts.sum() == (first(row) > 0)
