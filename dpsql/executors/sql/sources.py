"""Sources of a plan as table expressions: scans with declarations enforced, filters, joins, marks, unions, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod
from math import prod

from dpsql.executors.keyed_hash import HashKey
from dpsql.executors.pandas.database import fan_outs_above
from dpsql.executors.pandas.joins.pairing import most_pairs
from dpsql.executors.pandas.units import large_units
from dpsql.executors.sql.column_facts import (
    NOTHING,
    ColumnFacts,
    is_lookup,
    most_of_unit,
    one_unit,
    scan_below,
    steps_of,
)
from dpsql.executors.sql.dialect import Dialect, MissingFeature, StoredTable
from dpsql.executors.sql.inner_aggregates import aggregate_text
from dpsql.executors.sql.oversized_units import WholeRows, joins_of_whole_units
from dpsql.executors.sql.read_columns import is_public
from dpsql.executors.sql.row_limits import limited
from dpsql.executors.sql.rows import Name, Names, Rows, Writer
from dpsql.executors.sql.scans import Scans
from dpsql.executors.sql.semi_joins import SemiJoin, asked, terms_of_filters
from dpsql.executors.sql.stored_comparisons import conjunction, of_stored_cells
from dpsql.executors.sql.windows import windowed
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.digits import number_below
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.nodes import Filter, Join, Mark, Pair, PerUnit, RowLimit, Scan, Source, Union, Windows, scans_of
from dpsql.schema.columns import Type
from dpsql.schema.units import Unit


class Sources:
    """Writer of sources over stored tables, by folded name. `read`: the columns of the plan that are read. `key`: of
    the hash that selects the kept rows of a unit."""

    def __init__(
        self,
        dialect: Dialect,
        names: Names,
        tables: Mapping[str, StoredTable],
        read: frozenset[Name],
        seen: ColumnFacts = NOTHING,
        *,
        units: bool,
        key: HashKey,
    ) -> None:
        self.key = key
        self.dialect = dialect
        self.names = names
        self.writer = Writer(dialect, names)
        self.seen = seen
        self.scans = Scans(self.writer, tables, read, seen, units=units)
        self.fan_outs: Mapping[int, int] = {}
        self.named: dict[str, str] = {}
        """Table expressions that are read twice, by name, each over those before it."""
        self.whole = WholeRows(self.writer, self.named)

    def all_rows(self, source: Source) -> Rows:
        """Return the rows of the whole source of a plan."""
        self.whole.joins = frozenset(map(id, joins_of_whole_units(source)))
        return self.whole.without(self.rows(source))

    def rows(self, source: Source) -> Rows:
        """Return the rows of a source; if units are needed, only rows with one."""
        self.fan_outs = self.fan_outs or fan_outs_above(source)
        return self._made(source)

    @singledispatchmethod
    def _made(self, source: Source) -> Rows:
        raise MissingFeature(type(source).__name__)

    @_made.register
    def _(self, scan: Scan) -> Rows:
        return self.scans.rows(scan)

    # Nodes over others.

    @_made.register
    def _(self, node: Filter) -> Rows:
        parts = asked(node) if self.dialect.counts_first else None
        if parts is not None:
            return self._asked(parts)
        predicates, source = terms_of_filters(node)
        return self._filtered(predicates, self.rows(source))

    def _filtered(self, predicates: Sequence[Expr], rows: Rows) -> Rows:
        if not predicates:
            return rows
        read = [(each, of_stored_cells(each, rows, self.dialect)) for each in predicates]
        conditions = [text for _, text in read if text is not None]
        rest = [each for each, text in read if text is None]
        rows = self.writer.ready(rows, rest)
        conditions += [self.writer.text(each, rows) for each in rest]
        where = conjunction(conditions)
        return replace(rows, text=self.writer.select("*", rows.text, f" WHERE {where}"))

    def _asked(self, parts: SemiJoin) -> Rows:
        """Return the remaining rows, with other predicates first; the limit of pairs per unit counts all rows."""
        rows = self.writer.ready(self.rows(parts.source), [one for mark, _ in parts.marks for one, _ in mark.keys])
        joins: list[tuple[Mark, str, Rows, list[tuple[str, str]]]] = []
        for mark, keep in parts.marks:
            rows, inner, pairs = self._beside(mark, rows)
            joins.append((mark, "SEMI" if keep else "ANTI", inner, pairs))
        rows = self._filtered(parts.rest, rows)
        for mark, word, inner, pairs in joins:
            on = " AND ".join(self._alike(mark, rows, inner, pairs)) or "TRUE"
            name = self.names.fresh("c")
            listed = f"*, {'TRUE' if word == 'SEMI' else 'FALSE'} AS {name}"
            text = self.writer.select(listed, f"{rows.text} {word} JOIN {inner.text} ON {on}")
            columns = {**rows.columns, (mark.column.table, mark.column.name): name}
            rows = replace(rows, text=text, columns=columns)
        return rows

    @_made.register
    def _(self, node: Join) -> Rows:
        bare = self._bare(node, [node.right] if node.outer else [node.left, node.right])
        left = self.writer.ready(self._side(node.left, bare), [one for one, _ in node.keys])
        right = self.writer.ready(self._side(node.right, bare), [other for _, other in node.keys])
        both = left.unit is not None and right.unit is not None
        pairs = [self._equal(pair, (left, right), (node.left, node.right)) for pair in node.keys]
        left, right = self._bounded_sides(node, left, right, pairs)
        conditions = [f"{left.unit} = {right.unit}"] if both else []
        if both and (left.unit_kind is None) != (right.unit_kind is None):
            raise MissingFeature("join of rows that are units with others")
        conditions += [f"{one} = {other}" for one, other in pairs]
        columns = {**left.columns, **right.columns}
        right_text = right.text
        if node.present is not None:
            present = self.names.fresh("c")
            right_text = self.writer.select(f"*, TRUE AS {present}", right.text)
            columns[node.present.table, node.present.name] = present
        word = "LEFT JOIN" if node.outer else "JOIN"
        text = f"{left.text} {word} {right_text} ON {' AND '.join(conditions) or 'TRUE'}"
        listed = self.dialect.all_but([f"{right.unit}"]) if both else "*"
        bounded = {**left.bounded, **right.bounded}
        whose = right if bare is node.left else left
        return Rows(self.writer.select(listed, text), columns, whose.unit, whose.unit_kind, bounded=bounded)

    def _bare(self, node: Join | Mark, sides: Sequence[Source]) -> Source | None:
        """Return the side, if any, that need not be led to its unit, since the rows that it matches are."""
        left, right = (node.left, node.right) if isinstance(node, Join) else (node.input, node.inner)
        pairs_count = isinstance(node, Join) and not is_lookup(node)
        pairs_count = pairs_count or (isinstance(node, Mark) and node.condition is not None)
        if (pairs_count and not self._are_few(node)) or not one_unit(node.keys, left, right, self.seen):
            return None
        return max(sides, key=steps_of, default=None) if any(map(steps_of, sides)) else None

    def _side(self, source: Source, bare: Source | None) -> Rows:
        scan = scan_below(source)
        if source is not bare or scan is None:
            return self.rows(source)
        self.scans.bare.add(id(scan))
        rows = self.rows(source)
        self.scans.bare.discard(id(scan))
        return rows

    def _are_few(self, node: Join | Mark) -> bool:
        """Return whether every unit is known to stay within the limit of pairs."""
        most = most_pairs(self.fan_outs.get(id(node), 1))
        if isinstance(node, Join):
            most, pairs = min(most, large_units.MOST_WHOLE), most_of_unit(node, self.seen)
            return pairs is not None and pairs <= most
        sides = [most_of_unit(each, self.seen) for each in (node.input, node.inner)]
        return None not in sides and prod(each or 0 for each in sides) <= most

    def _bounded_sides(
        self, node: Join, left: Rows, right: Rows, pairs: Sequence[tuple[str, str]]
    ) -> tuple[Rows, Rows]:
        """Return the sides of a join, without units that would make too many pairs."""
        if left.unit is None or self._are_few(node):
            return left, right
        if right.unit is not None and not is_lookup(node):
            left, right = self._without_heavy_units(node, left, right, pairs)
        return self.whole.counted(left, right, pairs) if id(node) in self.whole.joins else (left, right)

    def _without_heavy_units(
        self, node: Join | Mark, left: Rows, right: Rows, pairs: Sequence[tuple[str, str]]
    ) -> tuple[Rows, Rows]:
        """Return the sides of a node, the right one without the rows of units that would make more pairs than the limit
        and than their rows on the left; this depends only on the unit's own rows. Both become names of the statement,
        since they are read twice."""
        most = most_pairs(self.fan_outs.get(id(node), 1))
        sides = [replace(rows, text=self.whole.as_name(rows)) for rows in (left, right)]
        crowded = [self.whole.crowded(rows, sides, most) for rows in sides]
        counted = []
        for rows, side, letter, place in ((left, crowded[0], "n", 0), (right, crowded[1], "m", 1)):
            keys = "".join(f", {pair[place]} AS {letter}k{number}" for number, pair in enumerate(pairs))
            by = ", ".join(str(each) for each in range(1, len(pairs) + 2))
            listed = f"{rows.unit} AS {letter}u{keys}, COUNT(*) AS {letter}"
            counted.append(self.writer.select(listed, side, f" GROUP BY {by}"))
        alike = " AND ".join(["nu = mu", *(f"nk{number} = mk{number}" for number in range(len(pairs)))])
        joined = f"{counted[0]} JOIN {counted[1]} ON {alike}"
        of_units = self.writer.select(f"nu, SUM(CAST(n AS {self.dialect.wide}) * m) AS made", joined, " GROUP BY nu")
        own = self.writer.select(f"{left.unit} AS own, COUNT(*) AS rows_of", crowded[0], " GROUP BY 1")
        heavy = self.writer.select(
            "nu AS heavy", f"{of_units} JOIN {own} ON nu = own", f" WHERE made > {most} AND made > rows_of"
        )
        light = self.writer.select("*", f"{sides[1].text} ANTI JOIN {heavy} ON {right.unit} = heavy")
        return sides[0], replace(sides[1], text=light)

    def _equal(self, pair: Pair, sides: tuple[Rows, Rows], sources: tuple[Source, Source]) -> tuple[str, str]:
        """Return both sides of an equality. An integer and a real are compared as numbers, not as doubles; digits of a
        larger integer and an integer as privacy unit keys, if both are such keys."""
        below = number_below(pair[0]), number_below(pair[1])
        own = [_is_unit(*each) for each in zip(below, sources, strict=True)]
        if below != pair and all(own) and sides[0].unit is not None and sides[1].unit is not None:
            return sides[0].unit, sides[1].unit
        texts = [self.writer.text(each, rows) for each, rows in zip(pair, sides, strict=True)]
        kinds = [pair[0].type, pair[1].type]
        if set(kinds) == {Type.INTEGER, Type.REAL}:
            place = kinds.index(Type.REAL)
            real = texts[place]
            least, above = (self.dialect.literal(each, Type.REAL) for each in (-(2.0**63), 2.0**63))
            inside = f"{real} = FLOOR({real}) AND {real} >= {least} AND {real} < {above}"
            texts[place] = f"CASE WHEN {inside} THEN CAST({real} AS BIGINT) END"
        if set(kinds) == {Type.DATE, Type.TIMESTAMP}:
            raise MissingFeature("join of dates with timestamps")
        return texts[0], texts[1]

    @_made.register
    def _(self, node: Mark) -> Rows:
        rows = self.writer.ready(self.rows(node.input), [one for one, _ in node.keys])
        rows, inner, pairs = self._beside(node, rows)
        conditions = self._alike(node, rows, inner, pairs)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        mark = f"EXISTS (SELECT 1 FROM {inner.text}{where})"
        if node.of_list:
            mark = self._of_list(node, mark, rows, inner)
        name = self.names.fresh("c")
        text = self.writer.select(f"*, {mark} AS {name}", rows.text)
        columns = {**rows.columns, (node.column.table, node.column.name): name}
        return replace(rows, text=text, columns=columns)

    def _beside(self, node: Mark, rows: Rows) -> tuple[Rows, Rows, list[tuple[str, str]]]:
        """Return the rows to mark, the inner rows, and the pairs of equal columns."""
        inner = self._side(node.inner, self._bare(node, [node.inner]))
        inner = self.writer.ready(inner, [other for _, other in node.keys])
        pairs = [self._equal(pair, (rows, inner), (node.input, node.inner)) for pair in node.keys]
        both = rows.unit is not None and inner.unit is not None
        if both and node.condition is not None and not self._are_few(node):
            rows, inner = self._without_heavy_units(node, rows, inner, pairs)
        return rows, inner, pairs

    def _alike(self, node: Mark, rows: Rows, inner: Rows, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return the conditions under which a row marks another."""
        both = rows.unit is not None and inner.unit is not None
        conditions = [f"{rows.unit} = {inner.unit}"] if both else []
        conditions += [f"{one} = {other}" for one, other in pairs]
        if node.condition is not None:
            beside = replace(inner, columns={**rows.columns, **inner.columns}, values={**rows.values, **inner.values})
            conditions.append(f"({self.writer.text(node.condition, beside)})")
        return conditions

    def _of_list(self, node: Mark, mark: str, rows: Rows, inner: Rows) -> str:
        """Return x IN (...). Ignores the existence and the NULLs of private rows: both could depend on any person."""
        asked, listed = self.writer.text(node.keys[-1][0], rows), self.writer.text(node.keys[-1][1], inner)
        if not is_public(node.inner):
            return f"CASE WHEN {mark} THEN TRUE WHEN {asked} IS NULL THEN NULL ELSE FALSE END"
        empty = f"NOT EXISTS (SELECT 1 FROM {inner.text})"
        unknown = f"{asked} IS NULL OR EXISTS (SELECT 1 FROM {inner.text} WHERE {listed} IS NULL)"
        return f"CASE WHEN {empty} THEN FALSE WHEN {mark} THEN TRUE WHEN {unknown} THEN NULL ELSE FALSE END"

    @_made.register
    def _(self, node: Union) -> Rows:
        named = {(column.table, column.name): self.names.fresh("c") for column in node.columns}
        branches, kinds, unit = [], set(), None
        for branch in node.branches:
            inner = self.rows(branch.input)
            rows = self.writer.ready(inner, branch.outputs)
            pairs = zip(branch.outputs, node.columns, strict=True)
            listed = [self._as(self.writer.text(expr, rows), expr.type, column.type) for expr, column in pairs]
            whose = rows.unit
            if whose is not None:
                unit = unit or self.names.fresh("u")
                kinds.add(rows.unit_kind)
                listed.append(whose)
            elif unit is not None:
                raise MissingFeature("union of public rows and people's")
            branches.append(f"SELECT {', '.join(listed) or '1'} FROM {rows.text}")
        if len(kinds) > 1 and None in kinds:
            raise MissingFeature("union of rows that are units with others")
        heads = [*named.values(), *([unit] if unit else [])] or ["nothing"]
        text = f"({' UNION ALL '.join(branches)}) AS {self.names.fresh('q')}({', '.join(heads)})"
        return Rows(text, named, unit, next(iter(kinds), None))

    def _as(self, text: str, kind: Type, wanted: Type) -> str:
        return text if kind is wanted else f"CAST({text} AS {self.dialect.type_name(wanted)})"

    @_made.register
    def _(self, node: PerUnit) -> Rows:
        rows = self.rows(node.input)
        arguments = [each.argument for each in node.aggregations if each.argument is not None]
        rows, _ = self.writer.with_values(rows, [*node.keys, *arguments])
        keys = [self.writer.key_text(key, rows) for key in node.keys]
        named = {(column.table, column.name): self.names.fresh("c") for column in node.columns}
        idents = list(named.values())
        aggregates = [
            aggregate_text(each, self._argument(each, rows), column.type, self.dialect)
            for each, column in zip(node.aggregations, node.columns[len(keys) :], strict=True)
        ]
        inner_keys = [self.names.fresh("k") for _ in keys]
        inner = self.writer.select(
            ", ".join(["*", *(f"{key} AS {name}" for key, name in zip(keys, inner_keys, strict=True))]), rows.text
        )
        unit = rows.unit
        by = [unit] if unit is not None else []
        if node.alone and unit is not None:
            listed = [f"MIN({name}) AS {ident}" for name, ident in zip(inner_keys, idents, strict=False)]
        else:
            listed = [f"{name} AS {ident}" for name, ident in zip(inner_keys, idents, strict=False)]
            by += inner_keys
        listed += [f"{text} AS {ident}" for text, ident in zip(aggregates, idents[len(keys) :], strict=True)]
        listed += [unit] if unit is not None else []
        rest = f" GROUP BY {', '.join(by)}" if by else " HAVING COUNT(*) > 0"
        return Rows(self.writer.select(", ".join(listed) or "1", inner, rest), named, unit, rows.unit_kind)

    @_made.register
    def _(self, node: Windows) -> Rows:
        return windowed(node, self.rows(node.input), self.writer)

    @_made.register
    def _(self, node: RowLimit) -> Rows:
        return limited(node, self.rows(node.input), self.writer, self.named, self.key)

    def _argument(self, each: Aggregation, rows: Rows) -> str | None:
        if each.argument is None:
            return None
        return (
            self.writer.key_text(each.argument, rows) if each.kind.distinct else self.writer.text(each.argument, rows)
        )


def _is_unit(expr: Expr, source: Source) -> bool:
    """Return whether an expression is the unit column of its table."""
    if not isinstance(expr, Column):
        return False
    return any(scan.name == expr.table and scan.table.unit == Unit(expr.name) for scan in scans_of(source))
