"""Which rows a mark is asked about: those that the predicates above it let pass, so far as its input tells.

Rows for which a predicate is not TRUE count for nothing, whatever they are marked with. So a mark may leave them out
where nothing but predicates and other marks stands above it.
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
        """Which rows of a mark's input it is asked about; None: all may be."""
        passing: Bools | None = None
        for term in self._terms if id(node) in self._marks else ():
            read = columns(term)
            if read and all(column.table in rows.parts for column in read):
                verdict = evaluated(term, rows)
                true = verdict.values.astype(bool) & verdict.where_valid()
                passing = true if passing is None else passing & true
        return passing
