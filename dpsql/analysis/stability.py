"""How neighbouring tables look after each node of a plan.

A transformation is c-stable when neighbours go to tables at distance at most c (McSherry, "Privacy Integrated
Queries", SIGMOD 2009, section 3). Under bounded neighbours a second fact matters: whether every unit's row still
reaches the aggregate, for only then is the number of rows public and the changed row in both tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from dpsql.errors import InternalError
from dpsql.sql.plan import Filter, Scan


@dataclass(frozen=True, slots=True)
class Stability:
    """`factor` rows at most change per privacy unit; `every_row`: no row of the table was left out below."""

    factor: int
    every_row: bool


@singledispatch
def stability(node: object) -> Stability:
    """The stability of a source node; no rule, no answer."""
    raise InternalError(f"no stability rule for {type(node).__name__}")


@stability.register
def _(_scan: Scan) -> Stability:
    """Each row is one unit: adding, removing or changing a unit adds, removes or changes one row of the scan."""
    return Stability(1, every_row=True)


@stability.register
def _(node: Filter) -> Stability:
    """A row passes or not by its own values alone, so one changed row below is at most one changed row above:
    it stays, leaves or enters. Rows may be left out, so the count above is no longer public."""
    return Stability(stability(node.input).factor, every_row=False)
