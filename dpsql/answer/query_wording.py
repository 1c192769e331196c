"""Planned expressions in the query's own words: columns instead of their clipped forms, paired arguments without their
NULL guards, and sums without their centring at 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.cost import Cost
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Expr, Literal, Slot, rebuild
from dpsql.release.bounds.auto_bounds import clamped, widest
from dpsql.release.output.labels import Label
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass

_PAIRED = frozenset({"count", "sum", "sum of squares"})


@dataclass(frozen=True, slots=True)
class QueryWording:
    """`columns`: the column for each clipped form; `pairs`: the value and the other argument for each paired one."""

    columns: dict[Expr, Expr]
    pairs: dict[Expr, tuple[Expr, Expr]]

    @classmethod
    def of(cls, release: Release) -> QueryWording:
        """Return the wording of a release. Columns whose bounds are still to be chosen appear unclipped."""
        chosen = [(each.column, each.held) for each in release.bounds]
        chosen += [(search.column, widest(search.column)) for search in release.searches.searches]
        columns: dict[Expr, Expr] = {clamped(column, held): column for column, held in chosen}
        pairs = {}
        for measured in release.analysis.measured:
            for each in measured.aggregation.arguments if measured.other is not None else ():
                parts = value_where(each)
                if parts is not None:
                    pairs[each] = (rebuild(parts[0], columns), rebuild(parts[1], columns))
        return cls(columns, pairs)

    def expr(self, expr: Expr) -> Expr:
        """Reword an expression of the plan."""
        return rebuild(expr, self.columns) if self.columns else expr

    def aggregation(self, each: Aggregation) -> Aggregation:
        """Reword an aggregation of the plan."""
        return each.rebuilt(self.columns) if self.columns else each

    def label(self, label: Label) -> Label:
        """Reword the label of a sum with noise."""
        label = replace(label, centre=label.centre or None)
        if len(label.of) == 1 and label.what in _PAIRED and label.around is None and label.of[0] in self.pairs:
            value, other = self.pairs[label.of[0]]
            return replace(label, of=(value,), where=other)
        phrases = {each: self._phrase(each) for each in self.pairs}
        said = {**self.columns, **phrases}
        of = tuple(rebuild(each, said) for each in label.of)
        around = None if label.around is None else self.label(label.around)
        return replace(label, of=of, around=around, when=None if label.when is None else rebuild(label.when, said))

    def _phrase(self, expr: Expr) -> Slot:
        value, other = self.pairs[expr]
        return Slot(0, f"{value} where {other} is not NULL", expr.type)


def value_where(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return v and o of CASE WHEN NOT (o IS NULL) THEN v ELSE NULL END, the form of a paired value; None otherwise."""
    if not isinstance(expr, Call) or expr.function.name != "case" or len(expr.args) != 3:
        return None
    condition, value, other = expr.args
    null = condition.args[0] if isinstance(condition, Call) and condition.function.name == "not" else None
    if not (isinstance(null, Call) and null.function.name == "is_null" and isinstance(other, Literal)):
        return None
    return (value, null.args[0]) if other.value is None else None


def share_in_words(parts: Sequence[Cost], whole: Cost) -> str:
    """Format parts of a cost as their share of it, such as `30 % of epsilon`."""
    if whole.epsilon is not None:
        return f"{100 * float(sum(each.epsilon or Fraction(0) for each in parts) / whole.epsilon):.3g} % of epsilon"
    return f"{100 * float(sum(each.rho for each in parts) / whole.rho):.3g} % of rho"


def plus_minus(half: float) -> str:
    """Format the half-width of an interval."""
    return f"±{half:.3g}" if half < 1e4 else f"±{half:,.0f}"
