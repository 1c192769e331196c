"""Cells of constant tables: the values of VALUES, lists, and SELECTs over constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.constants import MOST_ROWS, ConstantColumn
from dpsql.plan.domains import vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Column, Expr, Fact, Literal, Vector
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING, Interval
from dpsql.sql.bind.constant_series import LISTS, series
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.names.select_list import fresh, is_star, items_of
from dpsql.sql.names.star_modifiers import refuse_changes
from dpsql.sql.syntax.nodes import said
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import span_of

UNNESTED = "(unnest)"
"""The name of UNNEST's column in a SELECT."""


@dataclass(frozen=True)
class Cells:
    """Constant columns: names, types and cells."""

    columns: tuple[ConstantColumn, ...]

    @property
    def rows(self) -> int:
        return len(self.columns[0].cells)


class CellBinder:
    """Binder and evaluator of expressions over constants."""

    def __init__(self, sql: str, params: Params, used: set[str]) -> None:
        self.sql = sql
        self.params = params
        self.used = used

    def rows_of(self, node: exp.Expr, rows: Sequence[Sequence[exp.Expr]], names: Sequence[str] = ()) -> Cells:
        """Convert rows of constants to columns. Raises SQLSyntaxError, TypeMismatch."""
        binder = self._binder({})
        if len({len(row) for row in rows}) != 1:
            raise SQLSyntaxError("rows of constants are of one length.", span=self._span(node))
        bound = [[self._constant(each, binder) for each in row] for row in rows]
        named = names or [f"col{place}" for place in range(len(rows[0]))]
        return Cells(tuple(
            ConstantColumn(name, *self._together(node, binder, [row[place] for row in bound]))
            for place, name in enumerate(named)
        ))  # fmt: skip

    def _constant(self, node: exp.Expr, binder: ScalarBinder) -> Literal:
        bound = binder.bind(node)
        if not isinstance(bound, Literal):
            raise UnsupportedSQL("a table of constants holds constants alone.", span=self._span(node))
        return bound

    def _together(self, node: exp.Expr, binder: ScalarBinder, cells: Sequence[Literal]) -> tuple[Type, Vector]:
        """Convert one column's constants to a common type. Raises TypeMismatch."""
        present: list[Expr] = [each for each in cells if each.value is not None]
        meeting = iter(binder.as_times("coalesce", node, present))
        typed = [next(meeting) if each.value is not None else each for each in cells]
        kind = _one_type([each.type for each in typed if isinstance(each, Literal) and each.value is not None])
        if kind is None:
            raise TypeMismatch("a column of constants is of one type.", span=self._span(node))
        values: list[Key] = [each.value if isinstance(each, Literal) else None for each in typed]
        return kind, vector_of([_of_type(each, kind) for each in values], kind)

    def listed(self, node: exp.Expr) -> ConstantColumn:
        """Return the values of a constant list or series. Raises a QueryRefused."""
        binder = self._binder({})
        if isinstance(node, LISTS):
            return ConstantColumn("unnest", *series(node, binder, MOST_ROWS))
        if not isinstance(node, exp.Array) or not node.expressions:
            raise UnsupportedSQL(
                "UNNEST takes a list of constants here.", span=self._span(node), hint="Write UNNEST(['a', 'b'])."
            )
        bound = [self._constant(each, binder) for each in node.expressions]
        return ConstantColumn("unnest", *self._together(node, binder, bound))

    def computed(self, select: exp.Select, read: Mapping[str, ConstantColumn], own: str) -> Cells:
        """Evaluate a SELECT over constant columns, given by folded name. `own`: their table's name."""
        rows = next((len(each.cells) for each in read.values()), 1)
        binder = self._binder(read, own)
        kept = self._kept(select, binder, read, rows)
        taken: set[str] = set()
        columns: list[ConstantColumn] = []
        for item, alias in self._expanded(select, read):
            name = fresh(
                alias or (item.name if isinstance(item, exp.Column) else said(item)),
                taken,
            )
            expr = binder.bind(item)
            columns.append(ConstantColumn(name, expr.type, _evaluated(expr, read, rows).at(kept)))
        return Cells(tuple(columns))

    def _expanded(self, select: exp.Select, read: Mapping[str, ConstantColumn]) -> list[tuple[exp.Expr, str]]:
        items: list[tuple[exp.Expr, str]] = []
        for item, alias in items_of(select):
            if is_star(item):
                refuse_changes(item, self.sql)
                if not read:
                    raise SQLSyntaxError(
                        "* stands for the columns of FROM, and this SELECT has no FROM.",
                        span=self._span(item) or self._span(select),
                        hint="Write FROM and a table behind it, or constants: SELECT 1 AS x.",
                    )
                items += [(exp.column(exp.to_identifier(each.name, quoted=True)), each.name) for each in read.values()]
            else:
                items.append((item, alias))
        return items

    def _kept(
        self, select: exp.Select, binder: ScalarBinder, read: Mapping[str, ConstantColumn], rows: int
    ) -> np.ndarray:
        where = select.args.get("where")
        if where is None:
            return np.arange(rows)
        condition = binder.bind(where.this)
        if condition.type is not Type.BOOLEAN:
            raise TypeMismatch("WHERE wants a condition.", span=self._span(where))
        passes = _evaluated(condition, read, rows)
        return np.flatnonzero(passes.values.astype(bool) & passes.where_valid())

    def _binder(self, read: Mapping[str, ConstantColumn], own: str = "") -> ScalarBinder:
        def leaf(node: exp.Expr) -> Expr | None:
            if isinstance(node, exp.Explode):
                return _column(read[UNNESTED])
            if not isinstance(node, exp.Column):
                return None
            column = read.get(node.name.casefold())
            if column is None or (node.table and node.table.casefold() != own.casefold()):
                raise UnsupportedSQL(f'"{node.name}" is a column, and constants stand here.', span=self._span(node))
            return _column(column)

        return ScalarBinder(self.sql, leaf, self.params, self.used)

    def _span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


def _column(column: ConstantColumn) -> Column:
    """Return the column for use in expressions, with the facts about its cells."""
    present = column.cells.values[column.cells.where_valid()]
    ends = [present.min(), present.max()] if len(present) and column.type.ordered_number else []
    known = EVERYTHING if not ends else Interval(*(each.item() for each in ends))
    fact = Fact(known, nullable=len(present) < len(column.cells), whole=column.type.discrete)
    return Column(column.name, column.type, fact, UNNESTED)


def _evaluated(expr: Expr, read: Mapping[str, ConstantColumn], rows: int) -> Vector:
    by_name = {each.name: each.cells for each in read.values()}
    with np.errstate(all="ignore"):
        return evaluate(expr, lambda column: by_name[column.name], rows)


def _one_type(kinds: Sequence[Type]) -> Type | None:
    """Return the common type of values of these types, or None."""
    different = set(kinds)
    if not different:
        return Type.INTEGER
    if len(different) == 1:
        return kinds[0]
    return Type.REAL if different == {Type.INTEGER, Type.REAL} else None


def _of_type(value: Key, kind: Type) -> Key:
    return float(value) if kind is Type.REAL and isinstance(value, int) else value


def without_doubles(cells: Cells) -> Cells:
    """Return the distinct rows, where NULL equals NULL."""
    rows = zip(*(
        list(zip(each.cells.where_valid().tolist(), each.cells.values.tolist(), strict=True))
        for each in cells.columns
    ), strict=True)  # fmt: skip
    firsts = np.array(sorted({row: place for place, row in reversed(list(enumerate(rows)))}.values()))
    return Cells(tuple(replace(each, cells=each.cells.at(firsts)) for each in cells.columns))
