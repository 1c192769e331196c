"""The rows that a mark has to decide: those that pass the predicates above it, as far as its input shows.

Rows for which a predicate is not TRUE contribute nothing, whatever their mark. So a mark may skip them if only
predicates and other marks are above it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.expressions import Bools, Expr, columns, conjuncts
from dpsql.plan.nodes import Filter, Mark, Source


class MarkFilters:
    """The marks on top of a source, and the predicates above it."""

    def __init__(self, source: Source | None, predicates: Sequence[Expr]) -> None:
        self._terms = tuple(term for predicate in predicates for term in conjuncts(predicate))
        self._marks: set[int] = set()
        while isinstance(source, Mark | Filter):
            if isinstance(source, Mark):
                self._marks.add(id(source))
            source = source.input

    def among(self, node: Mark, rows: Relation) -> Bools | None:
        """Mark the input rows that the mark has to decide; None: all of them."""
        passing: Bools | None = None
        for term in self._terms if id(node) in self._marks else ():
            read = columns(term)
            if read and all(column.table in rows.parts for column in read):
                verdict = evaluated(term, rows)
                true = verdict.values.astype(bool) & verdict.where_valid()
                passing = true if passing is None else passing & true
        return passing
