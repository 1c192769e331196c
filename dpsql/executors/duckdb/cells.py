"""Cells of files as values of declared types, and unit identities: expressions that no cell makes fail."""

from __future__ import annotations

import re

from dpsql.executors.duckdb.parquet_types import plain
from dpsql.executors.duckdb.text_cells import exact_integer, nearest, read_text
from dpsql.schema.calendar import show_timestamp
from dpsql.schema.columns import CellFormat, ColumnSchema, Type

_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_WIDE = frozenset({"HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"})
_DOUBLES = frozenset({"FLOAT", "DOUBLE"})
_ZONED = frozenset({"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"})
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}) | _ZONED
_TEXTS = frozenset({"VARCHAR", "ENUM", "UUID"})
_PLAIN = {"BOOLEAN": Type.BOOLEAN, "DATE": Type.DATE, **dict.fromkeys(_TEXTS, Type.TEXT)}
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
"""The digits of a UUID between its dashes: the first of each part, and their number."""
_WHOLE_DOUBLES = 2.0**127
"""Whole doubles below it are written as their digits (see `exact_values.canonical`)."""


def kind_of(stored: str) -> str:
    """Return the name of a stored type without its parameters."""
    name = plain(stored)
    return re.split(r"\(", name)[0] if not name.endswith("]") else "LIST"


def type_of(stored: str) -> Type:
    """Return the default type of cells of a stored type."""
    kind = kind_of(stored)
    if kind in _WHOLE | _WIDE:
        return Type.INTEGER
    if kind in _DOUBLES or kind == "DECIMAL":
        return Type.REAL
    if kind in _TIMES:
        return Type.TIMESTAMP
    return _PLAIN.get(kind, Type.OTHER)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(name: str, stored: str) -> str:
    """Return a stored cell; NULL for a DECIMAL with more digits than its type, on which DuckDB can fail (in
    Parquet)."""
    if kind_of(stored) != "DECIMAL":
        return _name(name)
    digits, places = _digits_of(stored)
    most = f"{'9' * (digits - places)}.{'9' * places}"
    least, last = (f"CAST('{sign}{most}' AS DECIMAL({digits}, {places}))" for sign in ("-", ""))
    # The optimizer may separate the condition from the value that it guards, so the value is clipped as well.
    held = f"LEAST(GREATEST({_name(name)}, {least}), {last})"
    return f"(CASE WHEN {_name(name)} BETWEEN {least} AND {last} THEN {held} END)"


def _digits_of(stored: str) -> tuple[int, int]:
    """Return the number of digits of a DECIMAL, and how many of them follow the point."""
    digits, places = plain(stored).removeprefix("DECIMAL(").rstrip(")").split(",")
    return int(digits), int(places)


def cell_of(column: ColumnSchema) -> str | None:
    """Return a cell as a value of its column's type, or NULL; None if such cells never have that type."""
    return cell_text(column.name, column.storage, column.type, column.cell_format, column.zone, clips=column.clips)


def cell_text(
    name: str,
    stored: str,
    wanted: Type,
    form: CellFormat | None = None,
    zone: str | None = None,
    *,
    clips: bool = False,
) -> str | None:
    """Return a cell as a value of a type, or NULL; None if cells of the stored type never have that type.

    form: the format of texts; zone: the zone in which instants are shown (None: UTC); clips: whether a number beyond 64
    bits becomes the nearest INTEGER, as with declared bounds, instead of NULL."""
    kind, text = kind_of(stored), _cell(name, stored)
    if kind in _TEXTS and not wanted.opaque:
        as_bytes = _text(text, kind)
        assert as_bytes is not None  # texts have a reader
        return as_bytes if wanted is Type.TEXT and form is None else read_text(as_bytes, wanted, form, clips=clips)
    if wanted.opaque:
        return f"CASE WHEN {text} IS NOT NULL THEN TRUE END"
    if zone is not None and kind in _ZONED and wanted.temporal:
        shown = _on_clock(f"{_timestamp(text, kind)}", zone)
        return shown if wanted is Type.TIMESTAMP else f"TRY_CAST({shown} AS DATE)"
    if wanted is Type.INTEGER:
        return _integer(text, kind, clips=clips)
    maker = {
        Type.REAL: _real,
        Type.BOOLEAN: _boolean,
        Type.TEXT: _text,
        Type.DATE: _date,
        Type.TIMESTAMP: _timestamp,
    }[wanted]
    return maker(text, kind)


def _integer(text: str, kind: str, *, clips: bool) -> str | None:
    """Return an INTEGER; numbers with a fraction are NULL."""
    if kind in _WHOLE or kind == "BOOLEAN":
        return f"CAST({text} AS BIGINT)"
    read = nearest if clips else "TRY_CAST({} AS BIGINT)".format
    if kind in _WIDE:
        return read(text)
    if kind in _DOUBLES:
        return f"CASE WHEN isfinite({text}) AND TRUNC({text}) = {text} THEN {read(text)} END"
    return f"CASE WHEN {_is_whole(text)} THEN {read(_huge(text))} END" if kind == "DECIMAL" else None


def _is_whole(text: str) -> str:
    return f"TRUNC({text}) = {text}"


def _huge(text: str) -> str:
    """Return a decimal as an integer: one with many places cannot be compared with 1, which its type cannot hold."""
    return f"TRY_CAST({text} AS HUGEINT)"


def _real(text: str, kind: str) -> str | None:
    if kind in _DOUBLES:
        return f"NULLIF(CAST({text} AS DOUBLE), TRY_CAST('NaN' AS DOUBLE))"
    return f"CAST({text} AS DOUBLE)" if kind in _WHOLE | _WIDE | {"DECIMAL", "BOOLEAN"} else None


def _boolean(text: str, kind: str) -> str | None:
    if kind == "BOOLEAN":
        return text
    if not _is_number(kind):
        return None
    number = _huge(text) if kind == "DECIMAL" else text
    one = f"CASE WHEN {number} = 0 THEN FALSE WHEN {number} = 1 THEN TRUE END"
    return f"CASE WHEN {_is_whole(text)} THEN {one} END" if kind == "DECIMAL" else one


def _text(text: str, kind: str) -> str | None:
    """Return a text compared by bytes: a database column may have a collation that equates different texts."""
    if kind == "BLOB":  # declared as a UUID
        digits = f"LOWER(HEX({text}))"
        parts = (f"SUBSTRING({digits}, {first}, {count})" for first, count in _UUID_PARTS)
        joined = " || '-' || ".join(parts)
        return f"CASE WHEN OCTET_LENGTH({text}) = 16 THEN {joined} END COLLATE POSIX"
    return f"CAST({text} AS VARCHAR) COLLATE POSIX" if kind in _TEXTS | _WHOLE | _WIDE | {"DECIMAL"} else None


def _date(text: str, kind: str) -> str | None:
    if kind == "DATE":
        return text
    return f"TRY_CAST({_timestamp(text, kind)} AS DATE)" if kind in _TIMES else None


def _timestamp(text: str, kind: str) -> str | None:
    """Return a TIMESTAMP, nanoseconds rounded down. Values beyond TIMESTAMP become an end of the calendar."""
    if kind == "TIMESTAMP":
        return text
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"TRY_CAST({text} AS TIMESTAMP)"
    if kind.endswith("_NS"):
        ticks = _nanoseconds(text)
        return f"make_timestamp({ticks} // 1000 - CAST({ticks} % 1000 < 0 AS BIGINT))"
    ends = _ENDS.get(kind)
    if ends is None:
        return None
    first, last = (f"CAST('{each}' AS {kind})" for each in ends)
    return (
        f"CASE WHEN {text} > {last} THEN TIMESTAMP '9999-12-31 23:59:59.999999' "
        f"WHEN {text} < {first} THEN TIMESTAMP '0001-01-01 00:00:00' ELSE TRY_CAST({text} AS TIMESTAMP) END"
    )


def _on_clock(time: str, zone: str) -> str:
    """Return the clock time of a zone at a TIMESTAMP of UTC, which is clipped to the calendar so that no sum fails."""
    from dpsql.executors.sql.zones import offset_text  # most columns hold no instants

    first, last = (f"TIMESTAMP '{each}'" for each in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"))
    within = f"CASE WHEN {time} > {last} THEN {last} WHEN {time} < {first} THEN {first} ELSE {time} END"
    offset = offset_text(
        time,
        zone,
        lambda instant: f"TIMESTAMP '{show_timestamp(instant)}'",
        lambda each: f"INTERVAL ({each // 10**6}) SECOND",
    )
    return f"({within} + {offset})"


def _nanoseconds(text: str) -> str:
    """Return the ticks of a nanosecond time; DuckDB's infinities become those of 1677 and 2262, as in other readers."""
    time = f"TRY_CAST({text} AS TIMESTAMP_NS)"
    return _finite(time, f"epoch_ns({time})", "CAST('1970-01-01' AS TIMESTAMP_NS)", str(2**63 - 1))


_ENDS = {
    "DATE": ("0001-01-01", "9999-12-31"),
    "TIMESTAMP_S": ("0001-01-01 00:00:00", "9999-12-31 23:59:59"),
    "TIMESTAMP_MS": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999"),
}
"""The ends of the calendar by stored type: times between them fit a TIMESTAMP."""


def _is_number(kind: str) -> bool:
    return kind in _WHOLE | _WIDE | _DOUBLES or kind == "DECIMAL"


def identity_text(name: str, stored: str, wanted: Type, form: CellFormat | None = None, zone: str | None = None) -> str:
    """Return the unit identity: the exact stored value, if it has the declared type; equal numbers have one identity,
    whatever their storage."""
    kind, text = kind_of(stored), _cell(name, stored)
    cell = cell_text(name, stored, wanted, form, zone, clips=True)
    assert cell is not None  # checked by the store
    if wanted is Type.TEXT:
        return cell
    if kind in _TEXTS:
        return _identity_of_text(f"CAST({text} AS VARCHAR)", cell, wanted, form)
    if wanted is Type.BOOLEAN:
        return f"CAST({cell} AS BIGINT)"
    if wanted is Type.DATE and kind != "DATE":  # days within the calendar
        time = f"TRY_CAST({text} AS TIMESTAMP)"
        day = f"TRY_CAST({cell if zone is not None or kind.endswith('_NS') else time} AS DATE)"
        within = f"{day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"CAST(CASE WHEN {within} THEN {day} - DATE '1970-01-01' END AS BIGINT)"
    if kind in _WHOLE or kind == "BOOLEAN":
        return f"CAST({text} AS BIGINT)"
    if kind == "DATE":
        days = _finite(text, f"{text} - DATE '1970-01-01'", "DATE '1970-01-01'", str(2**31 - 1))
        whole = f"CAST(CAST({days} AS HUGEINT) * 86400000000000 AS VARCHAR)"
        return f"CAST({days} AS BIGINT)" if wanted is Type.DATE else whole
    exact = _of_time(text, kind) if kind in _TIMES else _of_number(text, stored)
    return f"CASE WHEN {cell} IS NOT NULL THEN {exact} END"


def _identity_of_text(text: str, cell: str, wanted: Type, form: CellFormat | None) -> str:
    """Return the identity of a text, which `cell` reads as a value of the type."""
    if wanted is Type.INTEGER:
        return exact_integer(text, form)
    if wanted is Type.BOOLEAN:
        return f"CAST({cell} AS BIGINT)"
    if wanted is Type.DATE:
        return f"CAST({cell} - DATE '1970-01-01' AS BIGINT)"
    return _of_time(cell, "TIMESTAMP") if wanted is Type.TIMESTAMP else _of_number(cell, "DOUBLE")


def _finite(time: str, ticks: str, middle: str, last: str) -> str:
    """Return the ticks of a time; infinite times have the ticks that represent them."""
    return (
        f"CASE WHEN isfinite({time}) THEN {ticks} WHEN {time} > {middle} THEN {last} WHEN {time} < {middle} "
        f"THEN -{last} END"
    )


def _of_time(text: str, kind: str) -> str:
    """Return its nanoseconds, marked if it is a moment of a time zone."""
    time, last = f"TRY_CAST({text} AS TIMESTAMP)", f"CAST('{2**63 - 1}000' AS HUGEINT)"
    ticks = _finite(time, f"epoch_us({time}) * CAST(1000 AS HUGEINT)", "TIMESTAMP '1970-01-01'", last)
    instant = "'@' || " if kind in _ZONED else ""
    return f"{instant}CAST({_nanoseconds(text) if kind.endswith('_NS') else ticks} AS VARCHAR)"


def _of_number(text: str, stored: str) -> str:
    """Return the canonical text of a number (see `exact_values.canonical`)."""
    kind = kind_of(stored)
    if kind == "DECIMAL":
        return _of_decimal(text, _digits_of(stored)[1])
    digits = f"CAST({text} AS VARCHAR)"
    if kind == "UHUGEINT":
        double = f"TRY_CAST({text} AS DOUBLE)"
        same = f"{double} >= {_WHOLE_DOUBLES!r} AND TRY_CAST({double} AS UHUGEINT) = {text}"
        return f"CASE WHEN {same} THEN {_of_double(double)} ELSE {digits} END"
    if kind in _WIDE:
        return digits
    double = f"CAST({text} AS DOUBLE)"  # so that 0.1 as FLOAT and as DOUBLE, which differ, stay distinct
    whole = f"TRUNC({double}) = {double} AND ABS({double}) < {_WHOLE_DOUBLES!r}"
    digits = f"CAST(TRY_CAST({double} AS HUGEINT) AS VARCHAR)"
    return f"CASE WHEN isnan({double}) THEN NULL WHEN {whole} THEN {digits} ELSE {_of_double(double)} END"


def _of_double(text: str) -> str:
    return f"'~' || CAST({text} AS VARCHAR)"


def _of_decimal(text: str, places: int) -> str:
    """Return the digits of a whole number; of a double if it is one, m / 10^p = (m / 5^p) / 2^p; or else its own."""
    digits = f"CAST({text} AS VARCHAR)"
    if places == 0:
        return digits
    ten, five = (f"CAST('{base**places}' AS HUGEINT)" for base in (10, 5))
    steps = f"TRY_CAST(REPLACE({digits}, '.', '') AS HUGEINT)"
    halves = f"({steps} // {five})"
    binary = f"{steps} % {five} = 0 AND TRY_CAST(CAST({halves} AS DOUBLE) AS HUGEINT) = {halves}"
    return (
        f"CASE WHEN {steps} % {ten} = 0 THEN CAST({steps} // {ten} AS VARCHAR) "
        f"WHEN {binary} THEN {_of_double(f'(CAST({halves} AS DOUBLE) / {2.0**places!r})')} "
        f"ELSE '#' || RTRIM({digits}, '0') END"
    )
