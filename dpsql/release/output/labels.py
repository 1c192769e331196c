"""Structured labels of coordinates: a name to print, and expressions that can be rephrased."""

from __future__ import annotations

import math

from dpsql.plan.expressions import Expr
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Number


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a sum: `what` is summed over the values of one or two expressions `of`, the first less its `centre`.
    `where`: the other value of a pair, without which a row does not count; `around`: the count of which half is
    subtracted (`subcounts`); `when`: the condition on the rows (`cells`)."""

    what: str
    of: tuple[Expr, ...] = ()
    centre: Number | None = None
    where: Expr | None = None
    around: Label | None = None
    when: Expr | None = None

    def __str__(self) -> str:
        what = ", ".join(str(each) for each in self.of)
        if self.centre is not None:
            sign = "+" if math.copysign(1, self.centre) < 0 else "-"
            what += f" {sign} {abs(self.centre):.10g}"
        if self.where is not None:
            what += f", where {self.where} is not NULL"
        name = f"{self.what}({what})" if what else self.what
        if self.when is not None:
            name += f" where {self.when}"
        return name if self.around is None else f"{name} around {self.around} / 2"
