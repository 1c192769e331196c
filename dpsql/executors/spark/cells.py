"""Cells of Spark's types as values of declared types, and as identities of privacy units. No cell can make a cast fail.
Dates and times become whole numbers here, so nothing later depends on a time zone."""

from __future__ import annotations

import re

from dpsql.executors.spark.date_functions import day_of
from dpsql.executors.sql.zones import offset_text
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_DOUBLES = frozenset({"float", "double"})
_TIMES = frozenset({"timestamp", "timestamp_ntz"})
_INFINITE = "CAST('inf' AS DOUBLE)"
SOUND_TEXT = "TRY_VALIDATE_UTF8({0})"
_PLACES = 38
"""Most digits of a DECIMAL."""


def kind_of(stored: str) -> str:
    """Return the name of a stored type, as Spark writes it, without its parameters."""
    return re.split(r"[( <]", stored)[0]


def type_of(stored: str) -> Type:
    """Return the default type of cells of a stored type."""
    kind = kind_of(stored)
    if kind in _WHOLE:
        return Type.INTEGER
    if kind in _DOUBLES or kind == "decimal":
        return Type.REAL
    if kind in _TIMES:
        return Type.TIMESTAMP
    texts = dict.fromkeys(("string", "char", "varchar"), Type.TEXT)
    return {"boolean": Type.BOOLEAN, "date": Type.DATE, **texts}.get(kind, Type.OTHER)


def cell_text(text: str, stored: str, wanted: Type, zone: str | None = None, *, clips: bool = False) -> str | None:
    """Return a cell as a value of a type, or NULL; None if cells of the stored type never have that type. Instants are
    shown in the zone (None: UTC). clips: whether a number beyond 64 bits becomes the nearest INTEGER, as with declared
    bounds, instead of NULL."""
    kind = kind_of(stored)
    if wanted.opaque:
        return f"CASE WHEN {text} IS NOT NULL THEN TRUE END"
    if zone is not None and kind == "timestamp" and wanted.temporal:
        shown = _on_clock(_microseconds(text, kind), zone)
        return shown if wanted is Type.TIMESTAMP else day_of(shown)
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
    if kind in _WHOLE or kind == "boolean":
        return f"CAST({text} AS BIGINT)"
    if kind in _DOUBLES:
        # As a double, the largest integer rounds to one too many.
        read = _nearest(text, f"{2.0**63!r}D", f"{-(2.0**63)!r}D", clips=clips)
        return f"CASE WHEN ABS({text}) < {_INFINITE} AND rint({text}) = {text} THEN {read} END"
    if kind != "decimal":
        return None
    wide = f"CAST({text} AS DECIMAL(38, 0))"
    read = _nearest(wide, f"{2**63}BD", f"{-(2**63)}BD", clips=clips)
    return f"CASE WHEN {_is_whole(text)} THEN {read} END"


def _nearest(number: str, above: str, least: str, *, clips: bool) -> str:
    """Return a whole number as a BIGINT; beyond its range the nearest one, or NULL."""
    last, first = (f"CAST({end} AS BIGINT)" if clips else "NULL" for end in (INT64.upper, INT64.lower))
    return (
        f"CASE WHEN {number} >= {above} THEN {last} WHEN {number} < {least} THEN {first} "
        f"ELSE CAST({number} AS BIGINT) END"
    )


def _is_whole(decimal: str) -> str:
    """Return whether a DECIMAL is whole. Comparing one of 38 digits with another type loses its last ones, also in
    FLOOR. The remainder is exact, and is 0 as a DOUBLE just if it is 0."""
    return f"CAST({decimal} % CAST(1 AS DECIMAL(1, 0)) AS DOUBLE) = 0e0"


def _real(text: str, kind: str) -> str | None:
    if kind in _DOUBLES:
        return f"NULLIF(CAST({text} AS DOUBLE), CAST('NaN' AS DOUBLE))"
    return f"CAST({text} AS DOUBLE)" if kind in _WHOLE | {"decimal", "boolean"} else None


def _boolean(text: str, kind: str) -> str | None:
    if kind == "boolean":
        return text
    if kind == "decimal":
        number = f"CAST({text} AS DOUBLE)"
        value = f"CASE WHEN {number} = 0e0 THEN FALSE WHEN {number} = 1e0 THEN TRUE END"
        return f"CASE WHEN {_is_whole(text)} THEN {value} END"
    is_number = kind in _WHOLE | _DOUBLES
    return f"CASE WHEN {text} = 0 THEN FALSE WHEN {text} = 1 THEN TRUE END" if is_number else None


def _text(text: str, kind: str) -> str | None:
    """Return a text compared by its bytes, whatever its collation; scans make invalid bytes NULL
    (`Dialect.sound_text`)."""
    kinds = _WHOLE | {"string", "char", "varchar", "decimal"}
    return f"CAST({text} AS STRING COLLATE UTF8_BINARY)" if kind in kinds else None


def _held(text: str, least: float, most: float) -> str:
    return (
        f"CASE WHEN {text} < {int(least)} THEN {int(least)} WHEN {text} > {int(most)} THEN {int(most)} ELSE {text} END"
    )


def _days(text: str) -> str:
    days = f"CAST(unix_date({text}) AS BIGINT)"
    return f"CAST({_held(days, DAYS.lower, DAYS.upper)} AS BIGINT)"


def _microseconds(text: str, kind: str) -> str:
    time = text if kind == "timestamp" else f"CAST({text} AS TIMESTAMP)"
    return f"CAST({_held(f'unix_micros({time})', MICROSECONDS.lower, MICROSECONDS.upper)} AS BIGINT)"


def _on_clock(instant: str, zone: str) -> str:
    """Return the clock time of a zone at microseconds of UTC."""
    constant = "CAST({} AS BIGINT)".format
    return f"({instant} + {offset_text(instant, zone, constant, constant)})"


def _date(text: str, kind: str) -> str | None:
    if kind == "date":
        return _days(text)
    return day_of(_microseconds(text, kind)) if kind in _TIMES else None


def _timestamp(text: str, kind: str) -> str | None:
    if kind == "date":
        return f"({_days(text)} * {MICROSECONDS_A_DAY})"
    return _microseconds(text, kind) if kind in _TIMES else None


def is_whole_identity(stored: str, wanted: Type) -> bool:
    """Return whether the unit identity is a whole number of 64 bits."""
    kind = kind_of(stored)
    if wanted is Type.TEXT:
        return False
    return wanted is Type.BOOLEAN or (wanted is Type.DATE and kind != "date") or kind in _WHOLE | {"boolean", "date"}


def identity_text(text: str, stored: str, wanted: Type, zone: str | None = None) -> str:
    """Return the unit identity: the exact stored value, if it has the declared type; equal numbers have one identity,
    whatever their storage."""
    kind = kind_of(stored)
    cell = cell_text(text, stored, wanted, zone, clips=True)
    assert cell is not None  # checked by the store
    if wanted is Type.TEXT:
        return SOUND_TEXT.format(cell)
    if wanted is Type.BOOLEAN or (wanted is Type.DATE and kind != "date"):
        return f"CAST({cell} AS BIGINT)"
    if kind in _WHOLE or kind == "boolean":
        return f"CAST({text} AS BIGINT)"
    if kind == "date":
        return f"CAST(unix_date({text}) AS BIGINT)"
    if kind in _DOUBLES:
        exact = _of_double(f"CAST({text} AS DOUBLE)")
    elif kind == "decimal":
        exact = _of_decimal(text, int(stored.rstrip(")").split(",")[1]))
    else:
        instant = "'@'" if kind == "timestamp" else "''"
        time = text if kind == "timestamp" else f"CAST({text} AS TIMESTAMP)"
        exact = f"{instant} || CAST(CAST(unix_micros({time}) AS DECIMAL(38, 0)) * 1000 AS STRING)"
    return f"CASE WHEN {cell} IS NOT NULL THEN {exact} END"


def brought_identity_text(name: str) -> str:
    """Return a number's identity from its text by `exact_values.canonical`: doubles with Spark's digits."""
    double = f"CAST(substring({name}, 2) AS DOUBLE)"
    return f"CASE WHEN {name} LIKE '~%' THEN {_fewest_digits(double)} ELSE {name} END"


def brought_number(text: str) -> str:
    """Rewrite a text of `exact_values.canonical`, with whole doubles beyond Spark's decimals as other doubles."""
    if len(text) <= _PLACES or not text.removeprefix("-").isdecimal() or abs(int(text)) < 10**_PLACES:
        return text
    return f"~{float(text)!r}" if int(float(text)) == int(text) else text


def _of_double(number: str) -> str:
    whole = f"rint({number}) = {number} AND ABS({number}) < 1e{_PLACES}"
    digits = f"CAST({_whole_double(number)} AS STRING)"
    return f"CASE WHEN isnan({number}) THEN NULL WHEN {whole} THEN {digits} ELSE {_fewest_digits(number)} END"


def _fewest_digits(number: str) -> str:
    return f"'~' || CAST({number} AS STRING)"


def _whole_double(number: str) -> str:
    """Return a whole double below 10^38 as a DECIMAL, in three exact parts: Spark casts by the shortest digits of a
    double, which from 2^53 on are another number's."""
    upper, step = (f"CAST('{2.0**bits!r}' AS DOUBLE)" for bits in (66, 33))
    high = f"CAST({number} / {upper} AS BIGINT)"
    rest = f"({number} - {high} * {upper})"
    middle = f"CAST({rest} / {step} AS BIGINT)"
    low = f"CAST({rest} - {middle} * {step} AS BIGINT)"
    return (
        f"CAST(CAST({high} AS DECIMAL(20, 0)) * CAST('{2**66}' AS DECIMAL(20, 0)) "
        f"+ CAST({middle} AS DECIMAL(20, 0)) * {2**33} + {low} AS DECIMAL({_PLACES}, 0))"
    )


def _of_decimal(text: str, places: int) -> str:
    """Return the digits of a whole number; of a double if it is one, that is, if (m / 10^p) 2^p is whole as a double
    and 5^p times that is m; otherwise its own without trailing zeros."""
    if places == 0:
        return f"CAST(CAST({text} AS DECIMAL({_PLACES}, 0)) AS STRING)"
    digits = _plain_digits(text)
    double = f"CAST({text} AS DOUBLE)"
    halves = f"({double} * {2**places}e0)"
    steps = f"CAST(translate({digits}, '.', '') AS DECIMAL({_PLACES}, 0))"
    same = f"try_multiply({_whole_double(halves)}, CAST('{5**places}' AS DECIMAL({len(str(5**places))}, 0))) = {steps}"
    binary = f"ABS({double}) < {2**53} AND rint({halves}) = {halves} AND {same}"
    return (
        f"CASE WHEN {_is_whole(text)} THEN CAST(CAST({text} AS DECIMAL({_PLACES}, 0)) AS STRING) "
        f"WHEN {binary} THEN {_fewest_digits(double)} ELSE '#' || TRIM(TRAILING '0' FROM {digits}) END"
    )


def _plain_digits(text: str) -> str:
    """Return the digits of a DECIMAL without an exponent, which Spark writes for small fractions."""
    digits = f"CAST({text} AS STRING)"
    zeros = f"repeat('0', CAST(substring_index({digits}, 'E-', -1) AS INT) - 1)"
    small = f"'0.' || {zeros} || translate(substring_index({digits}, 'E-', 1), '.-', '')"
    return f"CASE WHEN {digits} NOT LIKE '%E-%' THEN {digits} ELSE IF({digits} LIKE '-%', '-', '') || {small} END"
