"""What the rules of stability say of each node, and what they refuse by themselves, whatever was refused before a plan
was made."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.sensitivity.stability import DECLARED, Stability, stability
from dpsql.errors import InternalError
from dpsql.plan.expressions import Column, Fact, Literal
from dpsql.plan.nodes import Branch, Filter, Join, Mark, PerUnit, Scan, Source, Union
from dpsql.plan.prior_releases import VERSION
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.units import Unit

MARK = Column("found", Type.BOOLEAN, Fact())


def scan(name: str, **said: Any) -> Scan:
    return Scan(TableSchema(name, (), **said), name)


ROWS, OTHERS = scan("t"), scan("s")
PEOPLE, VISITS = scan("p", unit=Unit("id"), unique=(("id",),)), scan("e", unit=Unit("pid"))
PUBLIC = scan("q", public=True, rows=3)
SHOWN = scan("a", public=True, rows=3, version=VERSION)
"""A table of which an earlier release shows the rows."""
TRUE = Literal(value=True, type=Type.BOOLEAN)


def union(*branches: Source) -> Union:
    return Union(tuple(Branch(each, ()) for each in branches), ())


def per_unit(source: Source, *, alone: bool = False) -> PerUnit:
    return PerUnit(source, (), (), (), alone=alone)


@pytest.mark.parametrize(
    ("source", "by_unit", "every_row"),
    [
        (ROWS, {"t": 1}, True),
        (VISITS, {DECLARED: None}, False),
        (PUBLIC, {}, True),
        (Filter(ROWS, TRUE), {"t": 1}, False),
        (Join(ROWS, PUBLIC, (), matches=4), {"t": 4}, False),
        (Join(ROWS, PUBLIC, (), matches=0, outer=True), {"t": 1}, False),
        (Join(ROWS, PUBLIC, ()), {"t": None}, False),
        (Join(ROWS, SHOWN, (), matches=4), {"t": 4}, False),
        (Join(Join(ROWS, PUBLIC, (), matches=2), Filter(SHOWN, TRUE), (), matches=4), {"t": 8}, False),
        (Join(per_unit(PEOPLE, alone=True), per_unit(VISITS, alone=True), ()), {DECLARED: 1}, False),
        (Join(per_unit(PEOPLE, alone=True), VISITS, ()), {DECLARED: None}, False),
        (Mark(ROWS, PUBLIC, (), MARK), {"t": 1}, True),
        (Mark(per_unit(PEOPLE, alone=True), VISITS, (), MARK), {DECLARED: 1}, False),
        (Mark(PUBLIC, PUBLIC, (), MARK), {}, True),
        (union(ROWS, ROWS), {"t": 2}, False),
        (union(ROWS, OTHERS), {"t": 1, "s": 1}, False),
        (union(ROWS, PUBLIC), {"t": 1}, False),
        (per_unit(PEOPLE, alone=True), {DECLARED: 1}, False),
        (per_unit(VISITS), {DECLARED: None}, False),
        (per_unit(PUBLIC), {}, False),
    ],
)
def test_how_many_rows_of_a_unit_each_node_has(source: Source, by_unit: dict[str, int | None], every_row: bool):
    found = stability(source)
    assert isinstance(found, Stability)
    assert (dict(found.by_unit), found.every_row) == (by_unit, every_row)


@pytest.mark.parametrize(
    "source",
    [
        Mark(ROWS, ROWS, (), MARK),
        Mark(ROWS, PEOPLE, (), MARK),
        Mark(PEOPLE, ROWS, (), MARK),
        Mark(PUBLIC, PEOPLE, (), MARK),
        Mark(PUBLIC, ROWS, (), MARK),
        Join(ROWS, ROWS, ()),
        Join(ROWS, PEOPLE, ()),
        Join(PEOPLE, ROWS, ()),
        Join(PUBLIC, PEOPLE, ()),
        Join(PUBLIC, ROWS, ()),
        per_unit(ROWS),
        union(ROWS, PEOPLE),
        union(PEOPLE, PUBLIC, OTHERS),
    ],
)
def test_rows_of_different_units_never_meet(source: Source):
    with pytest.raises(InternalError):
        stability(source)


@pytest.mark.parametrize(
    "right",
    [Join(SHOWN, PUBLIC, (), matches=1), Join(PUBLIC, SHOWN, (), matches=1), union(SHOWN, PUBLIC), per_unit(SHOWN),
     Filter(union(SHOWN, SHOWN), TRUE), Mark(SHOWN, PUBLIC, (), MARK)],
)  # fmt: skip
def test_rows_that_are_still_to_come_are_joined_where_they_can_be_cut(right: Source):
    """What is joined is cut to the matches that were planned, of the table alone."""
    with pytest.raises(InternalError, match="still to come"):
        stability(Join(ROWS, right, (), matches=1))
    with pytest.raises(InternalError, match="still to come"):
        stability(Join(PUBLIC, right, (), matches=1))


def test_a_node_without_a_rule_has_no_answer():
    with pytest.raises(InternalError, match="no stability rule"):
        stability(object())
