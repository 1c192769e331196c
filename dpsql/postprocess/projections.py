"""Statements that only pass on columns of one relation: they are computed without DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsql.postprocess.frames import Frame, Header, in_order, vector_of_cells
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

_NAMES = r'"[^"]+"(?:, "[^"]+")*'
_SELECT = rf'SELECT (?P<names>{_NAMES}) FROM "(?P<relation>[^"]+)"'
_PLAIN = re.compile(_SELECT)
_SORTED = re.compile(rf"SELECT \* FROM \({_SELECT}\) AS __rows ORDER BY ALL")
_VALUE = re.compile(r'SELECT (?:TRY_)?CAST\(\$(?P<name>\w+) AS \w+\) AS "[^"]+"')
_SAME = (Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT)
"""Types that DuckDB returns unchanged."""


@dataclass(frozen=True)
class ColumnProjection:
    """Columns of a relation, by their places. `sorted`: sorted by these columns."""

    header: Header
    places: tuple[int, ...]
    sorted: bool

    def rows(self, frame: Frame, names: tuple[str, ...]) -> Frame | None:
        """Return the rows under these names; None if they must be sorted. Raises OverflowError as `array_of`."""
        if len(frame) > 1 and not self._are_in_order(frame):
            return None
        columns = [self.header.columns[place] for place in self.places]
        vectors = tuple(
            vector_of_cells(kind, self.header.cells(name, kind, frame.vectors[place]))
            for (name, kind), place in zip(columns, self.places, strict=True)
        )
        return Frame(names, tuple(kind for _, kind in columns), vectors)

    def _are_in_order(self, frame: Frame) -> bool:
        rising = in_order(frame)
        return (rising and self.places[0] == 0) if self.sorted else (rising or self.header.ordered)


def passing(sql: str, headers: Sequence[Header], values: dict[str, tuple[Header, int]]) -> ColumnProjection | None:
    """Return the columns that a text passes on; None if it does more. values: its parameters for one-row columns."""
    value = _VALUE.fullmatch(sql)
    if value is not None and value["name"] in values:
        header, place = values[value["name"]]
        return ColumnProjection(header, (place,), sorted=False)
    match = _PLAIN.fullmatch(sql) or _SORTED.fullmatch(sql)
    header_of = {each.name: each for each in headers}
    if match is None or match["relation"] not in header_of:
        return None
    header = header_of[match["relation"]]
    own = [name for name, _ in header.columns]
    names = re.findall(r'"([^"]+)"', match["names"])
    if any(own.count(name) != 1 for name in names):
        return None
    places = tuple(own.index(name) for name in names)
    if any(header.columns[place][1] not in _SAME for place in places):
        return None
    return ColumnProjection(header, places, sorted=sql.endswith("ORDER BY ALL"))
