"""Whether a column of a release can be told again from noise that is drawn anew: as SQL over answers is read
(`noise_of_values`), for what a release computes itself."""

from __future__ import annotations

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Expr, Literal, Slot, walk
from dpsql.plan.query import Query
from dpsql.schema.frozen import dataclass

_SUMS = frozenset({"add", "subtract"})
_NEARLY = frozenset(
    {"negate", "divide", "round", "floor", "ceil", "to_bigint", "to_integer", "to_double", "to_decimal"}
)
"""Of one value with noise, and known ones after it."""


@dataclass(frozen=True)
class Outputs:
    """The released values that outputs read, by slot: so many keys, then aggregates."""

    keys: int
    aggregations: tuple[Aggregation, ...]

    def smooth(self, expr: Expr) -> bool:
        """Whether a value is a sum of multiples of released ones, none of which was drawn among points: noise that is
        drawn anew says how far it may be off. Of a choice by noisy values, of their products and quotients and of all
        else it does not."""
        if isinstance(expr, Slot):
            return self._is_key(expr) or self._has_law(expr.index - self.keys)
        if not isinstance(expr, Call):
            return isinstance(expr, Literal)
        name, args = expr.function.name, expr.args
        if name in _SUMS:
            return all(map(self.smooth, args))
        if name == "multiply":
            return all(map(self.smooth, args)) and any(map(self.known, args))
        if name in _NEARLY:
            return self.smooth(args[0]) and all(map(self.known, args[1:]))
        if name == "coalesce":
            return all(map(self.smooth, args)) and not any(map(self._may_be_null, walk(expr)))
        return self.known(expr)

    def known(self, expr: Expr) -> bool:
        """Whether there is no noise in a value."""
        if isinstance(expr, Slot):
            return self._is_key(expr)
        return isinstance(expr, Literal) or (isinstance(expr, Call) and all(map(self.known, expr.args)))

    def _may_be_null(self, expr: Expr) -> bool:
        """Whether a released value is NULL where its noise says that there are too few rows."""
        if not isinstance(expr, Slot) or self._is_key(expr):
            return False
        kind = self.aggregations[expr.index - self.keys].kind
        return not (kind.linear or kind.distinct)

    def _is_key(self, slot: Slot) -> bool:
        return 0 <= slot.index < self.keys

    def _has_law(self, place: int) -> bool:
        """Whether the noise of an aggregate is that of sums. What has no interval of its own gives none to others."""
        return 0 <= place < len(self.aggregations) and not self.aggregations[place].kind.without_interval


def outputs_of(query: Query) -> Outputs:
    """The outputs of a release without stages."""
    return Outputs(len(query.plan.keys), query.plan.aggregations)
