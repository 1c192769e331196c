"""Decide which columns computed inside a release allow simulated intervals.

`noise_of_values` does the same for post-processing SQL.
"""

from __future__ import annotations

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Expr, Literal, Slot, walk
from dpsql.plan.query import Query
from dpsql.schema.frozen import dataclass

_SUMS = frozenset({"add", "subtract"})
_NEARLY = frozenset(
    {"negate", "divide", "round", "floor", "ceil", "to_bigint", "to_integer", "to_double", "to_decimal"}
)
"""Functions of one noisy value followed by known ones."""


@dataclass(frozen=True)
class Outputs:
    """The released values that outputs read, by slot: `keys` keys, then aggregates."""

    keys: int
    aggregations: tuple[Aggregation, ...]

    def smooth(self, expr: Expr) -> bool:
        """Return whether a value is a linear combination of released values with additive noise.

        Simulated noise then measures its error. It does not for values selected by noise, for products and quotients of
        noisy values, or for anything else.
        """
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
        """Return whether a value is free of noise."""
        if isinstance(expr, Slot):
            return self._is_key(expr)
        return isinstance(expr, Literal) or (isinstance(expr, Call) and all(map(self.known, expr.args)))

    def _may_be_null(self, expr: Expr) -> bool:
        """Return whether a released value is NULL where its noisy row count is too low."""
        if not isinstance(expr, Slot) or self._is_key(expr):
            return False
        kind = self.aggregations[expr.index - self.keys].kind
        return not (kind.linear or kind.distinct)

    def _is_key(self, slot: Slot) -> bool:
        return 0 <= slot.index < self.keys

    def _has_law(self, place: int) -> bool:
        """Return whether an aggregate has additive noise. An aggregate without an interval gives none to others."""
        return 0 <= place < len(self.aggregations) and not self.aggregations[place].kind.without_interval


def outputs_of(query: Query) -> Outputs:
    """Return the outputs of a single-step release."""
    return Outputs(len(query.plan.keys), query.plan.aggregations)
