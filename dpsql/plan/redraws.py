"""Propagation of noise through post-processing SQL: the columns that can be simulated from redrawn noise."""

from __future__ import annotations

from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class Noise:
    """Dependence of a value on the noise of released values.

    `leaves`: released columns, (relation, name), that it is computed from. `known`: it has no noise. `smooth`: computed
    from them only by sums, products and quotients of values away from 0, so that redrawn noise gives its error.
    `single`: in each row a monotone function of one released value, so that the ends of that value's interval give its
    own. `column`: columns of input relations that it copies.
    """

    known: bool = False
    smooth: bool = False
    single: bool = False
    leaves: frozenset[tuple[str, str]] = frozenset()
    column: frozenset[int] = frozenset()

    def computed(self, *, single: bool = True, smooth: bool = True) -> Noise:
        """Return the noise of a value computed from it, which is no longer a column."""
        return Noise(
            self.known, self.known or (self.smooth and smooth), self.known or (self.single and single), self.leaves
        )


KNOWN = Noise(known=True, smooth=True, single=True)
ROUGH = Noise()
"""A value with arbitrary dependence: a rank, a maximum, a choice by noisy values."""


@dataclass(frozen=True)
class RedrawStatement:
    """SQL over answers, rewritten for many runs in one: each relation has a column `RUN`, and the result has it before
    its own columns. `columns`: the noise of each of these."""

    sql: str
    columns: tuple[Noise, ...]


RUN = "__run"
RUNS = "__runs"
"""Relation of run numbers."""
