"""Prior answers inside a private SELECT.

A sub-query over private tables that produces an answer may stand below the aggregation: in FROM, WHERE, ON, GROUP BY
and inside aggregates. It is released first, and its result replaces it: a value, a table to join, or a list to search.
A sub-query next to the aggregates is post-processing SQL (`separation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from sqlglot import exp

from dpsql.sql.bind.aggregate_calls import is_aggregate
from dpsql.sql.boundary.relation_kinds import Common, Kinds
from dpsql.sql.boundary.separation import is_release, key_items
from dpsql.sql.syntax.nodes import NamedArguments

_WINDOWED = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


class AnswerReplacement(Protocol):
    """Replacement of an answer."""

    def value(self, node: exp.Subquery, names: Common | None) -> exp.Expr:
        """Replace a scalar sub-query."""

    def table(self, node: exp.Expr, names: Common | None) -> exp.Expr:
        """Replace an item of FROM."""

    def listed(self, query: exp.Expr, names: Common | None) -> exp.Expr:
        """Replace the operand of IN or EXISTS."""


class PriorParts:
    """Search for answers inside private SELECTs, and their replacement."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds

    def any(self, query: exp.Expr, names: Common | None) -> bool:
        """Return whether a private query or a release reads an answer below its aggregation."""
        return next(self._found(query, names, []), None) is not None

    def replaced(self, select: exp.Select, taken: AnswerReplacement) -> None:
        """Replace the answers inside a self-contained release. CTEs that are answers themselves are dropped."""
        answers: list[exp.CTE] = []
        pairs: list[tuple[exp.Expr, exp.Expr]] = []
        for node, names in self._found(select, None, answers):
            if isinstance(node, exp.Subquery) and not _is_source(node):
                pairs.append((node, taken.value(node, names) if not _is_list(node) else taken.listed(node, names)))
            else:
                pairs.append((node, taken.table(node, names) if _is_source(node) else taken.listed(node, names)))
        for node, new in pairs:  # only after all are read: one may read a CTE that holds another
            node.replace(new)
        for common in answers:
            clause = common.parent
            common.pop()
            if clause is not None and not clause.expressions:
                clause.pop()

    def _found(
        self, query: exp.Expr, names: Common | None, answers: list[exp.CTE]
    ) -> Iterator[tuple[exp.Expr, Common | None]]:
        """Yield the answers below the aggregation, with their visible CTEs. CTEs that produce answers are added to
        `answers`."""
        if isinstance(query, exp.Subquery):
            yield from self._found(query.this, names, answers)
            return
        inside = self.kinds.within(query, names)
        if isinstance(query, exp.SetOperation):
            yield from self._found(query.this, inside, answers)
            yield from self._found(query.expression, inside, answers)
            return
        if not isinstance(query, exp.Select) or not self.kinds.reads_people(query, inside):
            return
        yield from self._of_commons(inside, names, answers)
        for item in self.kinds.sources(query):
            if self.kinds.holds_people(item, inside):
                if isinstance(item, exp.Subquery):
                    yield from self._found(item.this, inside, answers)
            elif self.kinds.asks_people(item, inside) and not _is_join(item):
                yield item, inside
        for node in private_queries(query):
            inner = node.this if isinstance(node, exp.Subquery) else node
            if not self.kinds.asks_people(node, inside) or self._is_of_rows(inner, inside):
                continue
            if self.kinds.of_people(inner, inside):
                yield from self._found(inner, inside, answers)
            elif isinstance(inner, exp.Select) and _is_list(node) and _reads_outer_row(inner):
                yield from self._sources_of_list(inner, inside)
            else:
                yield node, inside

    def _sources_of_list(self, select: exp.Select, names: Common | None) -> Iterator[tuple[exp.Expr, Common | None]]:
        """Yield the answers in the FROM of a correlated list: they become public tables, and the list stays."""
        within = self.kinds.within(select, names)
        for item in self.kinds.sources(select):
            if self.kinds.asks_people(item, within) and not _is_join(item):
                yield item, within

    def _is_of_rows(self, query: exp.Expr, names: Common | None) -> bool:
        """Return whether a query is a SELECT WITH DIFFERENTIAL_PRIVACY over private rows that aggregates nothing."""
        if not isinstance(query, exp.Select) or query.args.get("privacy") is None or is_release(query):
            return False
        return self.kinds.reads_people(query, self.kinds.within(query, names))

    def _of_commons(
        self, scope: Common | None, outer: Common | None, answers: list[exp.CTE]
    ) -> Iterator[tuple[exp.Expr, Common | None]]:
        """Yield the answers in CTEs that produce private rows."""
        while scope is not outer and scope is not None:
            if self.kinds.of_people(scope.node.this, scope.before):
                yield from self._found(scope.node.this, scope.before, answers)
            elif self.kinds.asks_people(scope.node.this, scope.before):
                answers.append(scope.node)
            scope = scope.before


def _reads_outer_row(query: exp.Select) -> bool:
    """Return whether the WHERE of a SELECT over answers names a table outside its own FROM."""
    where = query.args.get("where")
    if where is None or is_release(query):
        return False
    first, joins = query.args.get("from_"), query.args.get("joins") or []
    own = {each.this.alias_or_name.casefold() for each in ([first] if first else []) + joins}
    walked = where.walk(prune=lambda each: isinstance(each, exp.Query))
    return any(isinstance(each, exp.Column) and each.table and each.table.casefold() not in own for each in walked)


def private_queries(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the sub-queries in expressions below the aggregation of this SELECT itself."""
    for clause in ("where", "group"):
        part = select.args.get(clause)
        if part is not None:
            yield from _queries(part, private=True)
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            yield from _queries(join.args["on"], private=True)
    released = is_release(select)
    keys = {id(item) for item in key_items(select)}
    for item in select.expressions:
        yield from _queries(item, private=not released or id(item) in keys)
    for clause in ("having", "qualify", "order"):
        part = select.args.get(clause)
        if part is not None:
            yield from _queries(part, private=False)


def _queries(node: exp.Expr, *, private: bool) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query):
        if private:
            yield node
        return
    if isinstance(node, exp.Window):
        windowed = node.this
        while isinstance(windowed, _WINDOWED):
            windowed = windowed.this
        parts = [*windowed.iter_expressions(), *(each for each in node.iter_expressions() if each is not node.this)]
        for each in parts:
            yield from _queries(each, private=private)
        return
    inside = (
        private or isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | NamedArguments) or is_aggregate(node)
    )
    for each in node.iter_expressions():
        yield from _queries(each, private=inside)


def _is_join(item: exp.Expr) -> bool:
    """Return whether an item of FROM is a join in parentheses, which is refused by name."""
    while isinstance(item, exp.Subquery):
        item = item.this
    return isinstance(item, exp.Table) and item.parent is not None and isinstance(item.parent, exp.Subquery)


def _is_source(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.From | exp.Join) and node.arg_key == "this"


def _is_list(node: exp.Expr) -> bool:
    """Return whether a node is the operand of IN or EXISTS."""
    return isinstance(node.parent, exp.Exists) or (isinstance(node.parent, exp.In) and node.arg_key == "query")
