"""EXISTS filters as joins that keep or drop rows, instead of marks.

WHERE EXISTS (...) is a mark whose only use is a predicate. As a join that keeps matching rows, an engine need not mark
each row first, and the other predicates come before it: they leave the same rows in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.plan.expressions import Call, Expr, columns, conjuncts
from dpsql.plan.nodes import Filter, Mark, Source
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, repr=False)
class SemiJoin:
    """A source, the marks that were on it, each with whether marked rows are kept (otherwise unmarked ones), and the
    predicates that read no mark."""

    source: Source
    marks: tuple[tuple[Mark, bool], ...]
    rest: tuple[Expr, ...]


def asked(node: Filter) -> SemiJoin | None:
    """Return the filter, with others right below it, as a SemiJoin, or None."""
    marks: list[Mark] = []
    terms, source = terms_of_filters(node)
    while isinstance(source, Mark):
        marks.insert(0, source)
        source = source.input
    made = {mark.column for mark in marks}
    rest = tuple(term for term in terms if made.isdisjoint(columns(term)))
    kept = [_kept(mark, terms) for mark in marks]
    between = any(not made.isdisjoint(columns(each)) for mark in marks for each in _read(mark))
    if not marks or None in kept or between or len(terms) > len(rest) + len(marks):
        return None
    return SemiJoin(source, tuple((mark, bool(keep)) for mark, keep in zip(marks, kept, strict=True)), rest)


def terms_of_filters(source: Source) -> tuple[list[Expr], Source]:
    """Collect the terms of consecutive filters, and the source below them."""
    terms: list[Expr] = []
    while isinstance(source, Filter):
        terms += conjuncts(source.predicate)
        source = source.input
    return terms, source


def _kept(mark: Mark, terms: Sequence[Expr]) -> bool | None:
    """Return whether marked rows are kept (True) or unmarked ones (False); None if the terms use the mark otherwise.
    NOT IN also depends on NULL."""
    if mark.column in terms:
        return True
    without = any(
        isinstance(term, Call) and term.function.name == "not" and term.args == (mark.column,) for term in terms
    )
    return False if without and not mark.of_list else None


def _read(mark: Mark) -> list[Expr]:
    return [*(one for one, _ in mark.keys), *([] if mark.condition is None else [mark.condition])]
