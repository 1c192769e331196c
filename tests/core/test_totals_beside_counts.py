"""A unit's clipped total is in proportion to its clipped number of rows: by brute force, all rows that it can have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from dpsql.core.exact import CountRows, CountUnits, LatticeSum, Part, UnitTotal
from dpsql.core.sensitivity import norms as reach
from dpsql.core.sensitivity.norms import Change, change_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.plan.expressions import Column, Fact
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from tests.core.checks import B, U
from tests.core.unit_checks import Question, people, people_stay_apart, planned

X, Y = (Column(name, Type.INTEGER, Fact(Interval(-9, 9), nullable=True, whole=True)) for name in "xy")
LIMITS = {2: {"max_rows": 2}, 3: {"max_rows": 3}}


def sums_of(value: Column, row: tuple[int, int], ends: tuple[int, int]) -> UnitTotal:
    return UnitTotal(LatticeSum(value, *row, 0, 1.0, *row, whole=True), *ends)


def analysed(most: int, relation: str, *, grouped: bool) -> Analysis:
    sql = "SELECT k, COUNT(*) FROM e GROUP BY k" if grouped else "SELECT COUNT(*) FROM e"
    return planned(people().limited(**LIMITS[most]), sql, relation).analysis


def units(parts: Sequence[Part]) -> Iterator[tuple[int, ...]]:
    """What one unit adds to parts over x and y: any rows, of which each may be NULL."""
    ends = [part.of for part in parts if isinstance(part, UnitTotal) and isinstance(part.of, LatticeSum)]
    choices = [(None, *sorted({each.least, 0, 1, each.most})) for each in ends]
    rows = list(itertools.product(*choices))
    for many in range(5):
        for held in itertools.combinations_with_replacement(rows, many):
            found = []
            for part in parts:
                if isinstance(part, CountUnits):
                    found.append(min(1, many))
                    continue
                assert isinstance(part, UnitTotal)
                if isinstance(part.of, CountRows):
                    place = next((n for n, each in enumerate(ends) if each.value == part.of.present), None)
                    seen = [1 for row in held if place is None or row[place] is not None]
                    found.append(max(part.least, min(part.most, len(seen))))
                else:
                    place = ends.index(part.of)
                    found.append(max(part.least, min(part.most, sum(row[place] or 0 for row in held))))
            yield tuple(found)


def met(parts: Sequence[Part], coordinates: Sequence[Sequence[tuple[int, int]]], relation: str) -> Change:
    """The largest norms of what a unit adds to one group; of what it changes, by the other relation."""
    made = {tuple(sum(f * unit[part] for part, f in terms) for terms in coordinates) for unit in units(parts)}
    moved = (
        made
        if relation == U
        else {tuple(a - b for a, b in zip(*two, strict=True)) for two in itertools.product(made, made)}
    )
    each = tuple(max(abs(one[place]) for one in moved) for place in range(len(coordinates)))
    l1 = max(sum(map(abs, one)) for one in moved)
    return Change(max(each), l1, max(sum(step * step for step in one) for one in moved), each, each)


CASES: dict[str, tuple[list[Part], list[list[tuple[int, int]]]]] = {}
for most in (2, 3):
    rows = UnitTotal(CountRows(None), 0, most)
    known = UnitTotal(CountRows(X), 0, most)
    even = sums_of(X, (0, 4), (0, 4 * most))
    wide = sums_of(X, (-1, 4), (-2 * most, 5 * most))
    one = sums_of(X, (0, 4), (0, 4))
    tight = sums_of(X, (0, 4), (0, 4 * most - 1))
    other = sums_of(Y, (-3, 0), (-3 * most, 0))
    far = sums_of(X, (2, 4), (0, 4 * most))
    for name, parts, terms in (
        ("a total", [rows, even], [[(0, 1)], [(1, 2), (0, -4)]]),
        ("of those that are known", [known, even], [[(0, 1)], [(1, 2), (0, -4)]]),
        ("wider ends", [rows, wide], [[(0, 1)], [(1, 2), (0, -3)]]),
        ("ends of less than all rows", [rows, tight], [[(0, 1)], [(1, 2), (0, -4)]]),
        ("two totals", [rows, even, other], [[(0, 1)], [(1, 2), (0, -4)], [(2, 2), (0, 3)]]),
        ("two totals in one", [rows, even, other], [[(0, 5)], [(1, 2), (2, 2), (0, -1)]]),
        ("rows without 0", [rows, far], [[(0, 1)], [(1, 2), (0, -4)]]),
        ("units too", [rows, even, CountUnits(None)], [[(0, 1), (2, 1)], [(1, 2), (0, -4)]]),
        ("another's count", [known, other, even], [[(0, 1)], [(1, 2), (0, 1)], [(2, 2), (0, -4)]]),
        ("ends of one row", [rows, one], [[(0, 1)], [(1, 5), (0, -2)]]),
    ):
        CASES[f"{name}, {most} rows"] = (parts, terms)


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("name", CASES)
def test_no_unit_moves_a_total_beside_its_count_further(name: str, relation: str) -> None:
    parts, terms = CASES[name]
    analysis = analysed(int(name[-6]), relation, grouped=False)
    said, found = change_of(parts, terms, analysis), met(parts, terms, relation)
    assert (found.cube, found.l1, found.l2_squared) <= (said.cube, said.l1, said.l2_squared)
    assert found.l1 <= said.l1
    assert found.l2_squared <= said.l2_squared
    assert all(one <= other for one, other in zip(found.sensitivity_of_each, said.sensitivity_of_each, strict=True))
    if name.startswith(("a total", "of those", "wider", "two totals,", "rows without")) and relation == U:
        assert found.cube == said.cube


def test_a_total_centred_on_its_count_costs_half_its_range() -> None:
    parts, terms = CASES["a total, 3 rows"]
    assert change_of(parts, terms, analysed(3, U, grouped=False)).sensitivity_of_each == (3, 12)
    grouped = change_of(parts, terms, analysed(3, B, grouped=True))
    assert grouped.cube == 2 * 3 * 12  # three groups, of which each may have all that is let in


@pytest.mark.parametrize("name", ["ends of one row", "another's count"])
def test_a_total_that_is_not_in_proportion_is_not_taken_for_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: any total is held by any count."""
    parts, terms = CASES[f"{name}, 3 rows"]
    analysis, found = analysed(3, U, grouped=False), met(parts, terms, U)
    monkeypatch.setattr(reach, "_held_by", lambda total, _: total)
    lied = change_of(parts, terms, analysis)
    assert any(one > other for one, other in zip(found.sensitivity_of_each, lied.sensitivity_of_each, strict=True))


@pytest.mark.parametrize("limits", [{"max_rows": 2}, {"max_groups": 2, "max_rows_per_group": 2}], ids=str)
def test_neighbours_stay_apart(limits: dict[str, int]) -> None:
    people_stay_apart(
        Question("SELECT COUNT(*), SUM(y) FROM e WHERE y > -1", limits),
        Question("SELECT k, COUNT(*), SUM(ABS(y)) FROM e GROUP BY k", limits),
        Question("SELECT SUM(ABS(y)), SUM(ABS(y) + 1) FROM e", limits),
    )()
