"""A checked statement and the declared tables -> a plan. Names, types and places are decided here, no row is read."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.errors import (
    RawColumn,
    SQLSyntaxError,
    TypeMismatch,
    UnknownColumn,
    UnknownTable,
    UnsupportedSQL,
    did_you_mean,
)
from dpsql.schema import TableSchema, Type, value_range
from dpsql.sql.allow import check
from dpsql.sql.catalog import Catalog
from dpsql.sql.expressions import Column, Expr, Fact, Literal, Slot
from dpsql.sql.groups import group_key
from dpsql.sql.parse import Statement, span_of
from dpsql.sql.plan import (
    Aggregate,
    AggregateKind,
    Aggregation,
    Filter,
    Finish,
    GroupKey,
    Order,
    Output,
    Query,
    Scan,
    Source,
)
from dpsql.sql.scalars import ScalarBinder
from dpsql.sql.words import check_words

_AGGREGATES: Mapping[type[exp.Expr], AggregateKind] = {
    exp.Count: AggregateKind.COUNT,
    exp.Sum: AggregateKind.SUM,
    exp.Avg: AggregateKind.AVG,
}


MOST_AGGREGATES = 100


def bind(statement: Statement, catalog: Catalog) -> Query:
    """The plan of a statement. Raises a QueryRefused that names the place in the text."""
    check(statement)
    check_words(statement)
    return _Binder(statement, catalog).query()


class _Binder:
    """One statement's names: the table's columns below the aggregation, the released slots above it."""

    def __init__(self, statement: Statement, catalog: Catalog) -> None:
        self.sql = statement.sql
        self.select = statement.select
        self.table, self.written, self.alias = self._from(catalog)
        self.private = ScalarBinder(self.sql, self._private_leaf)
        self.released = ScalarBinder(self.sql, self._released_leaf)
        self.keys: list[GroupKey] = []
        self.aggregations: dict[Aggregation, Slot] = {}
        self.outputs: list[Output] = []

    def query(self) -> Query:
        source = self._source()
        items = [_unaliased(each) for each in self.select.expressions]
        self._bind_keys(items)
        self.outputs = self._outputs(items)
        having = self._having()
        order = self._order()
        finish = Finish(tuple(self.outputs), having, order, self._whole("limit"), self._whole("offset") or 0)
        if not self.aggregations and not self.keys:
            raise SQLSyntaxError(
                "nothing is counted, summed or averaged.", hint=f"Write SELECT COUNT(*) FROM {self.table.name}."
            )
        plan = Aggregate(source, tuple(self.keys), tuple(self.aggregations))
        return Query(plan, finish, (*(self._key_slot(i) for i in range(len(self.keys))), *self._slots_in_order()))

    def _from(self, catalog: Catalog) -> tuple[TableSchema, str, str]:
        """The table, its name for messages, and the name that columns may be qualified with."""
        clause = self.select.args.get("from_")
        if clause is None:
            raise SQLSyntaxError("the query has no FROM.", hint="Write SELECT COUNT(*) FROM table.")
        node = clause.this
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise UnsupportedSQL("only a table's name can stand after FROM.", span=span_of(self.sql, node))
        table = catalog.find(node.name, span_of(self.sql, node.this))
        return table, node.name if catalog.any_name else table.name, node.alias or node.name

    def _source(self) -> Source:
        scan = Scan(self.table)
        where = self.select.args.get("where")
        if where is None:
            return scan
        aggregate = where.find(exp.AggFunc)
        if aggregate is not None:
            raise SQLSyntaxError(
                "an aggregate cannot stand in WHERE, which is about single rows.",
                span=span_of(self.sql, aggregate),
                hint="Conditions on an aggregate go into HAVING.",
            )
        return Filter(scan, self._condition(self.private.bind(where.this), where.this, "WHERE"))

    def _condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        if isinstance(expr, Literal) and expr.value is None:
            return Literal(None, Type.BOOLEAN)
        if expr.type is not Type.BOOLEAN:
            raise TypeMismatch(f"{clause} wants a condition, got {expr.type}.", span=span_of(self.sql, node))
        return expr

    def _bind_keys(self, items: list[tuple[exp.Expr, str]]) -> None:
        group = self.select.args.get("group")
        if group is not None and not group.expressions:
            raise SQLSyntaxError("GROUP BY names no column.", span=span_of(self.sql, group))
        for node in group.expressions if group else []:
            column = self._key_column(node, items)
            if column not in [key.column for key in self.keys]:
                declared = self.table.by_name[column.name.casefold()]
                self.keys.append(group_key(column, declared, span_of(self.sql, node)))

    def _key_column(self, node: exp.Expr, items: list[tuple[exp.Expr, str]]) -> Column:
        """The column a GROUP BY term means: a column's name wins over an alias, a number is a place in SELECT."""
        target = node.this if isinstance(node, exp.Paren) else node
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            target = self._ordinal(target, [item for item, _ in items], "GROUP BY")
        elif isinstance(target, exp.Column) and not target.table and target.name.casefold() not in self.table.by_name:
            named = [item for item, alias in items if alias and alias.casefold() == target.name.casefold()]
            target = named[0] if named else target
        if not isinstance(target, exp.Column):
            if target.find(exp.AggFunc):
                raise SQLSyntaxError("GROUP BY cannot hold an aggregate.", span=span_of(self.sql, node))
            raise UnsupportedSQL("GROUP BY takes columns, not expressions.", span=span_of(self.sql, node))
        return self._column(target)

    def _ordinal(self, node: exp.Expr, places: list[exp.Expr], clause: str) -> exp.Expr:
        text = str(node.this)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= len(places):
            raise SQLSyntaxError(
                f"{clause} {text} is not a place in SELECT, which has {len(places)}.", span=span_of(self.sql, node)
            )
        return places[int(text) - 1]

    def _outputs(self, items: list[tuple[exp.Expr, str]]) -> list[Output]:
        taken: set[str] = set()
        outputs = []
        for node, alias in items:
            if isinstance(node, exp.Star):
                raise RawColumn(
                    "SELECT * would return people's own values.",
                    span=span_of(self.sql, node),
                    hint="Name aggregates, for example COUNT(*), or columns of GROUP BY.",
                )
            name = _fresh(alias or self._text(node), taken)
            outputs.append(Output(name, self.released.bind(node)))
        return outputs

    def _having(self) -> Expr | None:
        having = self.select.args.get("having")
        if having is None:
            return None
        return self._condition(self.released.bind(having.this), having.this, "HAVING")

    def _order(self) -> tuple[Order, ...]:
        clause = self.select.args.get("order")
        return tuple(self._order_term(node) for node in clause.expressions) if clause else ()

    def _order_term(self, node: exp.Expr) -> Order:
        target = node.this
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            self._ordinal(target, self.select.expressions, "ORDER BY")
            expr = self.outputs[int(str(target.this)) - 1].expr
        else:
            expr = self._by_alias(target) or self.released.bind(target)
        return Order(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _whole(self, clause: str) -> int | None:
        node = self.select.args.get(clause)
        if node is None:
            return None
        text = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
        if not text.isdecimal() or len(text) > 18 or node.expression.args.get("is_string"):
            raise SQLSyntaxError(f"{clause.upper()} takes a whole number.", span=span_of(self.sql, node))
        return int(text)

    # Names below the aggregation: columns of the table.

    def _private_leaf(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.AggFunc):
            raise SQLSyntaxError("an aggregate cannot stand inside another.", span=span_of(self.sql, node))
        return None

    def _column(self, node: exp.Column) -> Column:
        span = span_of(self.sql, node)
        if isinstance(node.this, exp.Star):
            raise RawColumn("SELECT * would return people's own values.", span=span)
        if node.table and node.table.casefold() != self.alias.casefold():
            raise UnknownTable(
                f'no table "{node.table}" in this query, which reads {self.alias}.', span=span_of(self.sql, node)
            )
        declared = self.table.by_name.get(node.name.casefold())
        if declared is None:
            known = [column.name for column in self.table.columns]
            raise UnknownColumn(
                f'no column "{node.name}" in {self.written}.{did_you_mean(node.name, known)}',
                span=span,
                hint="Text is written in 'single quotes'." if node.this.args.get("quoted") else "",
            )
        return Column(declared.name, declared.type, Fact(value_range(declared), declared.nullable))

    # Names above the aggregation: keys, aggregates and aliases.

    def _released_leaf(self, node: exp.Expr) -> Expr | None:
        if type(node) in _AGGREGATES:
            return self._aggregate(node)
        if not isinstance(node, exp.Column):
            return None
        by_name = not node.table and node.name.casefold() not in self.table.by_name
        alias = self._by_alias(node) if by_name else None
        if alias is not None:
            return alias
        column = self._column(node)
        for index, key in enumerate(self.keys):
            if key.column == column:
                return self._key_slot(index)
        average = f"AVG({column}), or " if column.type.numeric else f"COUNT({column}), or "
        raise RawColumn(
            f'"{column.name}" is outside an aggregate, so the query would return people\'s own values.',
            span=span_of(self.sql, node),
            hint=f"Use {average}GROUP BY {column} if you want one row per {column}.",
        )

    def _by_alias(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, exp.Column) and not node.table:
            for output in self.outputs:
                if output.name.casefold() == node.name.casefold():
                    return output.expr
        return None

    def _aggregate(self, node: exp.Expr) -> Slot:
        kind = _AGGREGATES[type(node)]
        argument = self._argument(kind, node)
        aggregation = Aggregation(kind, argument, span_of(self.sql, node.this or node))
        if aggregation not in self.aggregations:
            if len(self.aggregations) == MOST_AGGREGATES:
                raise UnsupportedSQL(
                    f"more than {MOST_AGGREGATES} different aggregates share one epsilon.",
                    span=span_of(self.sql, node),
                    hint="Ask in several queries.",
                )
            index = len(self.keys) + len(self.aggregations)
            self.aggregations[aggregation] = Slot(index, str(aggregation), Type.REAL)
        return self.aggregations[aggregation]

    def _argument(self, kind: AggregateKind, node: exp.Expr) -> Expr | None:
        inner = node.this
        if inner is None:
            raise SQLSyntaxError(f"{kind} takes one argument.", span=span_of(self.sql, node))
        if isinstance(inner, exp.Star):
            if kind is not AggregateKind.COUNT:
                raise SQLSyntaxError(f"{kind}(*) is not a thing; only COUNT(*) is.", span=span_of(self.sql, node))
            return None
        expr = self.private.bind(inner)
        if kind is AggregateKind.COUNT:
            return None if isinstance(expr, Literal) and expr.value is not None else expr
        if not expr.type.numeric and expr.type is not Type.BOOLEAN:
            raise TypeMismatch(
                f'{kind}({expr}): "{expr.name if isinstance(expr, Column) else expr}" is {expr.type}.',
                span=span_of(self.sql, inner),
                hint=f"Did you mean COUNT({expr}) or GROUP BY {expr}?",
            )
        return expr

    def _key_slot(self, index: int) -> Slot:
        column = self.keys[index].column
        return Slot(index, column.name, column.type)

    def _slots_in_order(self) -> list[Slot]:
        return list(self.aggregations.values())

    def _text(self, node: exp.Expr) -> str:
        """The words of an item as written: the name of a column without an alias."""
        if isinstance(node, exp.Column):
            return self._column(node).name
        return node.sql(dialect="duckdb")


def _unaliased(node: exp.Expr) -> tuple[exp.Expr, str]:
    return (node.this, node.alias) if isinstance(node, exp.Alias) else (node, "")


def _fresh(name: str, taken: set[str]) -> str:
    """The name, with _1, _2 ... after it where it is taken."""
    fresh, number = name, 0
    while fresh.casefold() in taken:
        number += 1
        fresh = f"{name}_{number}"
    taken.add(fresh.casefold())
    return fresh
