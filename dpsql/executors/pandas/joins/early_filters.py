"""Predicates above joins that look rows up, applied as soon as there is what they read.

A row for which a predicate is not TRUE counts for nothing, so no join need look anything up for it. Only above joins
that find one row at most for each: whether a unit makes too many pairs in any other join is decided by all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.expressions import Expr, columns
from dpsql.plan.nodes import Filter, Join, Source


class EarlyFilters:
    """The joins that look rows up and the filters on top of a source, what is below them, and the predicates above."""

    def __init__(self, source: Source | None, predicates: Sequence[Expr]) -> None:
        self._terms = tuple(predicates)
        self._passed: list[Expr] = []
        self._nodes: list[int] = []
        while source is not None and predicates:
            self._nodes.append(id(source))
            source = _below(source)

    def give_up(self) -> bool:
        """Apply none from now on, and forget what was; whether there was anything to give up."""
        gave_up = bool(self._nodes)
        self._nodes, self._passed = [], []
        return gave_up

    def after(self, node: Source, rows: Relation) -> Relation:
        """The rows of a node without those that fail a predicate which reads them alone."""
        if id(node) not in self._nodes:
            return rows
        if id(node) == self._nodes[-1]:
            self._passed = []
        for term in self._terms:
            read = columns(term)
            if term not in self._passed and read and all(column.table in rows.parts for column in read):
                rows = _passing(term, _few(rows))
                self._passed.append(term)
        return _few(rows)

    def still_to_pass(self) -> tuple[Expr, ...]:
        """The predicates that were not applied to the rows of the source that was last made."""
        return tuple(term for term in self._terms if term not in self._passed)


def _below(source: Source) -> Source | None:
    """What a filter passes or a join looks rows up for; None below anything else."""
    if isinstance(source, Filter):
        return source.input
    return source.left if isinstance(source, Join) and source.matches == 1 and source.keys else None


def _passing(term: Expr, rows: Relation) -> Relation:
    verdict = evaluated(term, rows)
    kept = verdict.values.astype(bool) & verdict.where_valid()
    return Relation(rows.rows, rows.parts, rows.units, kept if rows.kept is None else kept & rows.kept)


def _few(rows: Relation) -> Relation:
    """The rows, without those that are not kept where these are most."""
    kept = rows.present()
    if kept is None or 2 * int(np.count_nonzero(kept)) > rows.rows:
        return rows
    return rows.at(np.flatnonzero(kept))
