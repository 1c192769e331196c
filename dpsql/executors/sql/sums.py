"""Sums over rows: the text of each part as an aggregate over columns of the rows' contributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.core.exact import (
    SHARE_STEPS,
    CellPart,
    CountDistinct,
    CountRows,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    Part,
)
from dpsql.executors.sql.contributions import Contributions
from dpsql.executors.sql.dialect import Dialect, MissingFeature
from dpsql.executors.sql.null_cells import of_values
from dpsql.executors.sql.row_values import product_text, share_text
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.schema.frozen import dataclass

Moment = LatticeProduct | LatticeShare


def with_moments(
    parts: Sequence[Part], columns: Contributions, rows: Rows, writer: Writer
) -> tuple[Rows, dict[Moment, str]]:
    """Return the rows with a column for each product and share."""
    moments: dict[Moment, str] = {}
    for each in parts:
        part = each.of if isinstance(each, CellPart) else each
        if isinstance(part, Moment) and part not in moments:
            first, second = columns.steps[part.first], columns.steps[part.second]
            if isinstance(part, LatticeProduct):
                moment = product_text(part, first, second, writer.dialect)
            else:
                moment = share_text(part, first, second)
            text = f"CASE WHEN {first} IS NOT NULL AND {second} IS NOT NULL THEN {moment} END"
            rows, moments[part] = writer.with_column(rows, text, "m")
    return rows, moments


@dataclass(frozen=True, repr=False)
class Sums:
    """Writer of parts of rows over their columns. shifted: whether the origin is subtracted from sums, not from
    values."""

    columns: Contributions
    moments: Mapping[Moment, str]
    writer: Writer
    shifted: bool

    @property
    def dialect(self) -> Dialect:
        return self.writer.dialect

    def text(self, part: Part, conditions: Sequence[str]) -> str:
        """Return a part of rows, over those that meet the conditions."""
        if isinstance(part, CellPart):
            of_all = of_values(part, self.columns.values)
            if of_all is not None and not conditions:
                return of_all if isinstance(of_all, str) else self.text(of_all, conditions)
            return self.text(part.of, [*conditions, f"{self.columns.cells[part.alternatives]} = {part.number}"])
        where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if isinstance(part, CountRows):
            counted = "*" if part.present is None else self.columns.values[part.present]
            return f"COUNT({counted}){where}"
        if isinstance(part, CountDistinct):
            rows = Rows("", {}, values={part.value: self.columns.values[part.value]})
            return f"COUNT(DISTINCT {self.writer.key_text(part.value, rows)}){where}"
        if isinstance(part, LatticeSum):
            return self._steps(part, where)
        if isinstance(part, Moment):
            most = part.most if isinstance(part, LatticeProduct) else SHARE_STEPS
            return f"COALESCE({self.dialect.total(self.moments[part], most, where)}, 0)"
        raise MissingFeature(type(part).__name__)

    def _steps(self, part: LatticeSum, where: str) -> str:
        value, most = self.columns.bare.get(part), max(abs(part.least), abs(part.most))
        if value is None or not part.origin or not self.shifted:
            return f"COALESCE({self.dialect.total(self.columns.steps[part], most, where)}, 0)"
        origin = f"CAST({int(part.origin)} AS {self.dialect.wide}) * COUNT({value}){where}"
        total = self.dialect.total(value, most + abs(int(part.origin)), where)
        return f"COALESCE({total} - {origin}, 0)"
