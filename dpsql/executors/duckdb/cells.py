"""Cells of files as values of declared types, and what tells units apart there: expressions that no cell makes fail."""

from __future__ import annotations

import re

from dpsql.schema.columns import Type

_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_WIDE = frozenset({"HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"})
_DOUBLES = frozenset({"FLOAT", "DOUBLE"})
_ZONED = frozenset({"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"})
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}) | _ZONED
_LARGEST = 2**62
_WHOLE_DOUBLES = 2.0**127
"""Whole doubles below it are told apart by their digits (as of `exact_values.canonical`)."""


def kind_of(stored: str) -> str:
    """The name of a stored type without its parameters."""
    return re.split(r"\(", stored)[0] if not stored.endswith("]") else "LIST"


def type_of(stored: str) -> Type:
    """The type that cells of a stored type have where none is declared."""
    kind = kind_of(stored)
    if kind in _WHOLE | _WIDE:
        return Type.INTEGER
    if kind in _DOUBLES or kind == "DECIMAL":
        return Type.REAL
    if kind in _TIMES:
        return Type.TIMESTAMP
    return {"BOOLEAN": Type.BOOLEAN, "VARCHAR": Type.TEXT, "ENUM": Type.TEXT, "DATE": Type.DATE}.get(kind, Type.OTHER)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def cell_text(name: str, stored: str, wanted: Type) -> str | None:
    """A cell as a value of a type, NULL where it is none; None where cells of the stored type are never read so."""
    kind, text = kind_of(stored), _name(name)
    if wanted is Type.OTHER:
        return f"CASE WHEN {text} IS NOT NULL THEN TRUE END"
    maker = {
        Type.INTEGER: _integer,
        Type.REAL: _real,
        Type.BOOLEAN: _boolean,
        Type.TEXT: _text,
        Type.DATE: _date,
        Type.TIMESTAMP: _timestamp,
    }[wanted]
    return maker(text, kind)


def _integer(text: str, kind: str) -> str | None:
    """Numbers with a fraction are none, and those beyond +-2^62 are held to it."""
    if kind in _WHOLE or kind == "BOOLEAN":
        return f"CAST({text} AS BIGINT)"
    if kind in _WIDE:
        return _limited(text)
    if kind in _DOUBLES:
        return f"CASE WHEN isfinite({text}) AND TRUNC({text}) = {text} THEN {_limited(text)} END"
    return f"CASE WHEN {_is_whole(text)} THEN {_limited(_huge(text))} END" if kind == "DECIMAL" else None


def _limited(text: str) -> str:
    return (
        f"CASE WHEN {text} >= {_LARGEST} THEN {_LARGEST} WHEN {text} <= {-_LARGEST} THEN {-_LARGEST} "
        f"ELSE TRY_CAST({text} AS BIGINT) END"
    )


def _is_whole(text: str) -> str:
    return f"TRUNC({text}) = {text}"


def _huge(text: str) -> str:
    """A decimal as an integer: one of many places after the point is compared with no 1, which it cannot hold."""
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
    """As bytes: a column of a database may have a collation of its own, for which texts that differ are equal."""
    return f"CAST({text} AS VARCHAR) COLLATE POSIX" if kind in ("VARCHAR", "ENUM") else None


def _date(text: str, kind: str) -> str | None:
    if kind == "DATE":
        return text
    return f"TRY_CAST({_timestamp(text, kind)} AS DATE)" if kind in _TIMES else None


def _timestamp(text: str, kind: str) -> str | None:
    """What no TIMESTAMP holds is an end of the calendar; nanoseconds are rounded down to microseconds."""
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


def _nanoseconds(text: str) -> str:
    """Of a time of nanoseconds, also of what DuckDB calls infinite there, which others read as those of 1677 and
    2262."""
    time = f"TRY_CAST({text} AS TIMESTAMP_NS)"
    return _finite(time, f"epoch_ns({time})", "CAST('1970-01-01' AS TIMESTAMP_NS)", str(2**63 - 1))


_ENDS = {
    "DATE": ("0001-01-01", "9999-12-31"),
    "TIMESTAMP_S": ("0001-01-01 00:00:00", "9999-12-31 23:59:59"),
    "TIMESTAMP_MS": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999"),
}
"""Of the calendar, in what is stored: between them a time is a TIMESTAMP."""


def _is_number(kind: str) -> bool:
    return kind in _WHOLE | _WIDE | _DOUBLES or kind == "DECIMAL"


def identity_text(name: str, stored: str, wanted: Type) -> str:
    """What tells units apart: the stored value, exactly, where it is one of the declared type; equal numbers are one,
    whatever stores them."""
    kind, text = kind_of(stored), _name(name)
    cell = cell_text(name, stored, wanted)
    assert cell is not None  # as the store saw
    if wanted is Type.TEXT:
        return cell
    if wanted is Type.BOOLEAN:
        return f"CAST({cell} AS BIGINT)"
    if wanted is Type.DATE and kind != "DATE":  # the days of the calendar
        day = f"TRY_CAST({cell if kind.endswith('_NS') else f'TRY_CAST({text} AS TIMESTAMP)'} AS DATE)"
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


def _finite(time: str, ticks: str, middle: str, last: str) -> str:
    """The ticks of a time, of the infinite ones those that hold them."""
    return (
        f"CASE WHEN isfinite({time}) THEN {ticks} WHEN {time} > {middle} THEN {last} WHEN {time} < {middle} "
        f"THEN -{last} END"
    )


def _of_time(text: str, kind: str) -> str:
    """Its nanoseconds, with a mark where it is a moment of a time zone."""
    time, last = f"TRY_CAST({text} AS TIMESTAMP)", f"CAST('{2**63 - 1}000' AS HUGEINT)"
    ticks = _finite(time, f"epoch_us({time}) * CAST(1000 AS HUGEINT)", "TIMESTAMP '1970-01-01'", last)
    instant = "'@' || " if kind in _ZONED else ""
    return f"{instant}CAST({_nanoseconds(text) if kind.endswith('_NS') else ticks} AS VARCHAR)"


def _of_number(text: str, stored: str) -> str:
    """One text for each number (as of `exact_values.canonical`)."""
    kind = kind_of(stored)
    if kind == "DECIMAL":
        return _of_decimal(text, int(stored.rstrip(")").split(",")[1]))
    digits = f"CAST({text} AS VARCHAR)"
    if kind == "UHUGEINT":
        double = f"TRY_CAST({text} AS DOUBLE)"
        same = f"{double} >= {_WHOLE_DOUBLES!r} AND TRY_CAST({double} AS UHUGEINT) = {text}"
        return f"CASE WHEN {same} THEN {_of_double(double)} ELSE {digits} END"
    if kind in _WIDE:
        return digits
    double = f"CAST({text} AS DOUBLE)"  # so that 0.1 of FLOAT and of DOUBLE, which differ, are two
    whole = f"TRUNC({double}) = {double} AND ABS({double}) < {_WHOLE_DOUBLES!r}"
    digits = f"CAST(TRY_CAST({double} AS HUGEINT) AS VARCHAR)"
    return f"CASE WHEN isnan({double}) THEN NULL WHEN {whole} THEN {digits} ELSE {_of_double(double)} END"


def _of_double(text: str) -> str:
    return f"'~' || CAST({text} AS VARCHAR)"


def _of_decimal(text: str, places: int) -> str:
    """A whole number's digits; a double's where it is one, m / 10^p = (m / 5^p) / 2^p; else its own."""
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
