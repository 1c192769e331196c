"""Predicates above look-up joins, applied as soon as their columns are available.

A row for which a predicate is not TRUE contributes nothing, so joins can skip it. This holds only above joins that find
at most one row for each: in other joins, all rows of a unit decide whether it makes too many pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.expressions import Expr, columns
from dpsql.plan.nodes import Filter, Join, Source


class EarlyFilters:
    """The look-up joins and filters on top of a source, the source below them, and the predicates above."""

    def __init__(self, source: Source | None, predicates: Sequence[Expr]) -> None:
        self._terms = tuple(predicates)
        self._passed: list[Expr] = []
        self._nodes: list[int] = []
        while source is not None and predicates:
            self._nodes.append(id(source))
            source = _below(source)

    def give_up(self) -> bool:
        """Stop applying predicates and forget the applied ones; return whether there was anything to give up."""
        gave_up = bool(self._nodes)
        self._nodes, self._passed = [], []
        return gave_up

    def after(self, node: Source, rows: Relation) -> Relation:
        """Return the rows of a node that satisfy the predicates which read only these rows."""
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
        """Return the predicates not yet applied to the rows of the last source."""
        return tuple(term for term in self._terms if term not in self._passed)


def _below(source: Source) -> Source | None:
    """Return the input of a filter, or the left side of a look-up join; None for anything else."""
    if isinstance(source, Filter):
        return source.input
    return source.left if isinstance(source, Join) and source.matches == 1 and source.keys else None


def _passing(term: Expr, rows: Relation) -> Relation:
    verdict = evaluated(term, rows)
    kept = verdict.values.astype(bool) & verdict.where_valid()
    return Relation(rows.rows, rows.parts, rows.units, kept if rows.kept is None else kept & rows.kept)


def _few(rows: Relation) -> Relation:
    """Remove the rows that are not kept if they are the majority."""
    kept = rows.present()
    if kept is None or 2 * int(np.count_nonzero(kept)) > rows.rows:
        return rows
    return rows.at(np.flatnonzero(kept))
