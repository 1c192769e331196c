"""Plans and sensitivities as text: each NAME.sql beside its NAME.golden.

The comment at the top of a .sql file works the numbers out by hand (U: one row added or removed, B: one row changed;
M the largest |value|, D the width of the range). DPSQL_REGEN=1 writes the goldens anew: read the difference, and the
comment, before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpsql.core.sensitivity.row_contributions import Analysis, Contribution, MeasuredAggregation, analyse
from dpsql.core.unit import Neighbours
from dpsql.errors import QueryRefused
from dpsql.plan.query import Query, format_plan
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, StoredColumn, resolve
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from tests.core.norms import norms

FOLDER = Path(__file__).parent
CASES = sorted(path.stem for path in FOLDER.glob("*.sql"))
REGEN = os.environ.get("DPSQL_REGEN") == "1"

PEOPLE = resolve(
    "people",
    [
        StoredColumn("age", Type.INTEGER, nullable=False, storage="int64"),
        StoredColumn("hours", Type.INTEGER, nullable=True, storage="Int64"),
        StoredColumn("year", Type.INTEGER, nullable=False, storage="int64"),
        StoredColumn("income", Type.REAL, nullable=True, storage="float64"),
        StoredColumn("change", Type.REAL, nullable=True, storage="float64"),
        StoredColumn("score", Type.REAL, nullable=True, storage="float64"),
        StoredColumn("sex", Type.TEXT, nullable=True, storage="str"),
        StoredColumn("region", Type.TEXT, nullable=True, storage="str"),
        StoredColumn("city", Type.TEXT, nullable=True, storage="str"),
        StoredColumn("member", Type.BOOLEAN, nullable=False, storage="bool"),
        StoredColumn("active", Type.BOOLEAN, nullable=True, storage="boolean"),
        StoredColumn("born", Type.OTHER, nullable=True, storage="datetime64[us]"),
    ],
    Declaration.of(
        bounds={"age": (17, 90), "hours": (1, 99), "income": (0, 200_000), "change": (-5, 3)},
        keys={"sex": ["Female", "Male"], "region": ["north", "south", None]},
        nullable={"change": False},
    ),
)


def golden(sql: str) -> str:
    """The plan, each aggregate's argument, and what one row can change; or the refusal."""
    try:
        query = plan_of(sql, Catalog({"people": PEOPLE}))[0].query
        both = [analyse(query.plan, relation) for relation in (Neighbours.UNBOUNDED, Neighbours.BOUNDED)]
    except QueryRefused as refusal:
        return f"{type(refusal).__name__}: {refusal}\n"
    return "\n".join([format_plan(query), f"groups: {_groups(query)}", *_measures(*both)]) + "\n"


def _groups(query: Query) -> str:
    if not query.plan.keys:
        return "one"
    cells = query.plan.public_cells
    return "unknown" if cells is None else f"{cells} public"


def _measures(unbounded: Analysis, bounded: Analysis) -> list[str]:
    assert unbounded.known == bounded.known
    lines = [f"number of rows public: U {unbounded.public_count}, B {bounded.public_count}"]
    for one, other in zip(unbounded.measured, bounded.measured, strict=True):
        assert (one.aggregation, one.argument) == (other.aggregation, other.argument)
        lines.append(f"{one.aggregation}: {_argument(one)}")
        if one.of == "choice":
            values = one.aggregation.values
            lines.append("  drawn from its range" if values is None else f"  drawn from {len(values)} public values")
            continue
        lines.append(f"  count  U {_norms(unbounded, one.count)}  B {_norms(bounded, other.count)}")
        if one.other is not None:
            lines.append(f"  second {one.other.range}")
        if one.sum is not None:
            assert other.sum is not None
            lines.append(f"  sum    U {_norms(unbounded, one.sum)}  B {_norms(bounded, other.sum)}")
    return lines


def _argument(measured: MeasuredAggregation) -> str:
    argument = measured.aggregation.argument
    if argument is None:
        return "every row"
    null = "may be NULL" if measured.argument.nullable else "never NULL"
    return f"{argument.type}, {measured.argument.range}, {null}"


def _norms(analysis: Analysis, row: Contribution) -> str:
    found = norms(analysis, row)
    return f"(L1 {found.l1:.12g}, L2 {found.l2:.12g}, Linf {found.linf:.12g})"


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str):
    found = golden((FOLDER / f"{name}.sql").read_text(encoding="utf-8"))
    file = FOLDER / f"{name}.golden"
    if REGEN:
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


def test_there_is_a_query_for_every_golden():
    assert len(CASES) >= 35
    assert sorted(path.stem for path in FOLDER.glob("*.golden")) == CASES
