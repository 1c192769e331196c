"""Time zones: local times of instants, from one public table for all engines.

A zone is a list of instants at which its offset changes. The list comes from the computer's time zone database. All
engines get the same list and use no database of their own. An offset depends only on one cell's instant, which keeps
evaluation row-local.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC as UTC_CLOCK
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from dpsql.errors import InvalidArgument, as_written, did_you_mean
from dpsql.schema.columns import UTC, ColumnSchema, TableSchema
from dpsql.schema.frozen import dataclass

FIRST_YEAR, LAST_YEAR = 1840, 2100
"""Earlier offsets equal the one at the beginning of the first year, later ones that at the end of the last year."""
_OFFSET = re.compile(r"([+-])(0[0-9]|1[0-4]):([0-5][0-9])")
_NAMES_OF_UTC = frozenset({"utc", "z", "etc/utc", "etc/zulu", "zulu", "universal", "etc/universal", "+00:00", "-00:00"})
_START = datetime(1970, 1, 1)
_SECOND = 1_000_000


@dataclass(frozen=True)
class Offsets:
    """Offsets of a zone from UTC, in microseconds: `offsets[0]` before the first of `instants` (also in microseconds,
    since 1970 UTC), `offsets[i]` from `instants[i - 1]` on."""

    instants: tuple[int, ...]
    offsets: tuple[int, ...]


def checked_zone(word: object) -> str:
    """Return the name of a time zone, "UTC" for all its names. Raises InvalidArgument."""
    if not isinstance(word, str) or not word:
        raise InvalidArgument(f"timezone must be the name of a time zone, got {as_written(word)}.", hint=_EXAMPLE)
    if word.casefold() in _NAMES_OF_UTC:
        return UTC
    if _OFFSET.fullmatch(word):
        return word
    from zoneinfo import available_timezones  # reads a folder, and most sessions name no zone

    names = available_timezones()
    if word not in names:
        near = did_you_mean(word, sorted(names))
        raise InvalidArgument(f'"{word}" is not a time zone that this computer knows.{near}', hint=_EXAMPLE)
    return word


_EXAMPLE = 'Write timezone="Europe/Berlin", or an offset such as timezone="+02:00".'


@lru_cache(maxsize=32)
def offsets_of(zone: str) -> Offsets:
    """Return the table of a zone validated by `checked_zone`."""
    fixed = _OFFSET.fullmatch(zone)
    if fixed is not None or zone == UTC:
        seconds = 0 if fixed is None else int(fixed[2]) * 3_600 + int(fixed[3]) * 60
        return Offsets((), ((-seconds if fixed is not None and fixed[1] == "-" else seconds) * _SECOND,))
    clock = _clock(zone)
    day = timedelta(days=1)
    at, end = datetime(FIRST_YEAR, 1, 1), datetime(LAST_YEAR + 1, 1, 1)
    instants: list[int] = []
    offsets = [_seconds(at, clock)]
    while at < end:
        later = at + day
        if _seconds(later, clock) != offsets[-1]:
            low, high = at, later
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if _seconds(middle, clock) == offsets[-1] else (low, middle)
            instants.append((high - _START) // timedelta(microseconds=1))
            offsets.append(_seconds(later, clock))
        at = later
    return Offsets(tuple(instants), tuple(each * _SECOND for each in offsets))


def _clock(zone: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone)


def _seconds(instant: datetime, clock: tzinfo) -> int:
    offset = instant.replace(tzinfo=UTC_CLOCK).astimezone(clock).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)


_SHOWS_ZONE = re.compile(r"datetime64\[\w+, (.+)\]|timestamp\[\w+, tz=([^\]]+)\](?:\[pyarrow\])?")
_INSTANTS = frozenset({"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", "timestamp"})
"""Stored types of instants, as DuckDB and Spark name them."""
_CELL_BY_CELL = ("object", "category", "dictionary")
"""Storages in which each cell may have a zone."""


def zone_by_storage(storage: str) -> str | None:
    """Return UTC for a stored type that shows another zone. Before columns were shown in UTC, such a column was that
    zone's wall clock: the keys of its questions distinguish the two readings."""
    shown = _SHOWS_ZONE.search(storage)
    own = "utc" if shown is None else (shown[1] or shown[2])
    return None if own.casefold() in _NAMES_OF_UTC else UTC


def in_zone(tables: Mapping[str, TableSchema], zone: str) -> dict[str, TableSchema]:
    """Return the tables with their columns of instants shown in a zone."""
    return {
        name: replace(table, columns=tuple(_column_in(column, zone) for column in table.columns))
        for name, table in tables.items()
    }


def _column_in(column: ColumnSchema, zone: str) -> ColumnSchema:
    storage = column.storage
    instants = storage in _INSTANTS or storage.startswith(_CELL_BY_CELL) or _SHOWS_ZONE.search(storage)
    return replace(column, zone=zone) if column.type.temporal and instants else column
