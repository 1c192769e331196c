"""Tables whose rows are constants of the text: VALUES, lists and series. They are public, and their cells determine all
declarations.

Equal cells make the same table: its name and version are derived from them, so that they enter the keys of questions
like the contents of public tables.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from dpsql.plan.domains import MOST_TEXT, cells_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Vector, walk
from dpsql.plan.nodes import Filter, Scan, Source
from dpsql.plan.query import MOST_DERIVED_CELLS
from dpsql.plan.row_local import INEXACT
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

MOST_ROWS = 1_000_000
"""Maximum number of rows of a table of constants."""
PREFIX = "constants "


@dataclass(frozen=True)
class ConstantColumn:
    """A column of constants: its name, type and cells."""

    name: str
    type: Type
    cells: Vector


@dataclass(frozen=True)
class ConstantTable(TableSchema):
    """A public table whose rows are constants of the text."""

    cells: tuple[Vector, ...] = field(default=(), compare=False, repr=False)
    """Cells of each column; `version` is derived from them."""

    @property
    def is_constant(self) -> bool:
        return True


def constant_table(columns: Sequence[ConstantColumn]) -> ConstantTable:
    """Return the table of these columns, all of one length."""
    rows = len(columns[0].cells)
    digest = _digest(columns)
    declared: list[ColumnSchema] = []
    unique: list[tuple[str, ...]] = []
    matches: list[tuple[str, int]] = []
    for each in columns:
        cells = cells_of(each.cells, each.type)
        counts = Counter(cells)
        nullable = counts.pop(None, 0) > 0
        most = max(counts.values(), default=1)
        declared.append(ColumnSchema(each.name, each.type, nullable, _bounds(each), _keys(counts, nullable=nullable)))
        matches.append((each.name, most))
        unique += [(each.name,)] if most == 1 else []
    return ConstantTable(
        name=PREFIX + digest[:16],
        columns=tuple(declared),
        public=True,
        unique=tuple(unique),
        max_matches=tuple(matches),
        rows=rows,
        version=PREFIX + digest,
        cells=tuple(each.cells for each in columns),
    )


def _digest(columns: Sequence[ConstantColumn]) -> str:
    """Return a digest that identifies the table: names, types and cells, each with its length."""
    hashed = hashlib.sha256()
    for each in columns:
        text = each.type is Type.TEXT
        values = (
            repr(each.cells.values.tolist()).encode("utf-8", "surrogatepass") if text else each.cells.values.tobytes()
        )
        for part in (each.name.encode("utf-8", "surrogatepass"), str(each.type).encode(), values,
                     each.cells.where_valid().tobytes()):  # fmt: skip
            hashed.update(b"%d " % len(part) + part)
    return hashed.hexdigest()


def _bounds(column: ConstantColumn) -> Interval | None:
    present = column.cells.values[column.cells.where_valid()]
    if not (column.type.numeric or column.type.temporal) or not len(present):
        return None
    ends = [present.min().item(), present.max().item()]
    return Interval(*ends) if all(np.isfinite(ends)) else None


def _keys(counts: Counter[Key], *, nullable: bool) -> tuple[Key, ...] | None:
    """Return the distinct values, ascending, NULL last; None if they are too many, or there are none."""
    texts = sum(len(cell) for cell in counts if isinstance(cell, str))
    if len(counts) > MOST_DERIVED_CELLS or texts > MOST_TEXT or not (counts or nullable):
        return None
    ordered = sorted(counts, key=lambda cell: cell)  # type: ignore[arg-type,return-value]
    return (*ordered, None) if nullable else tuple(ordered)


def most_alike(source: Source, expr: Expr) -> int | None:
    """Return the most rows of a table of constants with one value of an expression, ignoring NULL; None for other
    sources, or if engines may compute different values."""
    while isinstance(source, Filter):
        source = source.input
    if not isinstance(source, Scan) or not isinstance(source.table, ConstantTable) or expr.type is Type.REAL:
        return None
    if any(isinstance(each, Call) and each.function.name in INEXACT for each in walk(expr)):
        return None
    cells = dict(zip((each.name for each in source.table.columns), source.table.cells, strict=True))
    with np.errstate(all="ignore"):
        found = evaluate(expr, lambda column: cells[column.name], source.table.rows or 0)
    counts = Counter(each for each in cells_of(found, expr.type) if each is not None)
    return max(counts.values(), default=1)


def limits_of(source: Source, exprs: Sequence[Expr]) -> list[int]:
    """Return `most_alike` for each expression that has it, except bare columns."""
    limits = [most_alike(source, expr) for expr in exprs if not isinstance(expr, Column)]
    return [most for most in limits if most is not None]
