"""What noise does to SQL over answers: which of its columns can be told again from noise that is drawn anew."""

from __future__ import annotations

from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class Noise:
    """How a value depends on the noise of what was released.

    `leaves`: the released columns, (relation, name), that it is made of. `known`: there is no noise in it. `smooth`:
    made of them by sums, products and quotients of values away from 0 alone, so that noise drawn anew says how far it
    may be off. `single`: in each row a monotone function of one released value, so that the ends of its interval are
    those of this one. `column`: which columns of the relations at hand it passes on as they are."""

    known: bool = False
    smooth: bool = False
    single: bool = False
    leaves: frozenset[tuple[str, str]] = frozenset()
    column: frozenset[int] = frozenset()

    def computed(self, *, single: bool = True, smooth: bool = True) -> Noise:
        """What is computed of it, which is no column any more."""
        return Noise(
            self.known, self.known or (self.smooth and smooth), self.known or (self.single and single), self.leaves
        )


KNOWN = Noise(known=True, smooth=True, single=True)
ROUGH = Noise()
"""What could be anything: a rank, a maximum, a choice by values with noise."""


@dataclass(frozen=True)
class RedrawStatement:
    """SQL over answers, written once more for many runs in one: each relation has a column `RUN`, and so has what it
    gives, before its own columns. `columns`: what noise does to each of these."""

    sql: str
    columns: tuple[Noise, ...]


RUN = "__run"
RUNS = "__runs"
"""The relation of their numbers."""
