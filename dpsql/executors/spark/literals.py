"""Constants in Spark's SQL."""

from __future__ import annotations

from dpsql.executors.sql.dialect import MissingFeature
from dpsql.schema.columns import Key, Type

NAN = "CAST('NaN' AS DOUBLE)"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:/^()[]+*?|")


def literal(value: Key, kind: Type) -> str:
    """Return a constant of exactly the SQL type for values of a type; dates and times are numbers."""
    if value is None:
        return f"CAST(NULL AS {type_name(kind)})"
    if kind is Type.TEXT:
        return quoted(str(value))
    if kind is Type.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind is Type.REAL:
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    return f"CAST({int(value)} AS BIGINT)"


def type_name(kind: Type) -> str:
    """Return the SQL type: dates are days and times microseconds since 1970, in no time zone or calendar of an
    engine."""
    if kind.opaque:
        return "BOOLEAN"
    names = {Type.REAL: "DOUBLE", Type.BOOLEAN: "BOOLEAN", Type.TEXT: "STRING"}
    return names.get(kind, "BIGINT")


def quoted(text: str) -> str:
    """Return a quoted text with everything escaped except letters, digits and a few signs, so that neither Spark's
    parser nor its variables interpret it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MissingFeature("text with half a character in it") from None
    return "'" + "".join(sign if sign in _PLAIN else _escaped(ord(sign)) for sign in text) + "'"


def _escaped(code: int) -> str:
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def braced(text: str) -> str:
    """Escape a text for a template."""
    return text.replace("{", "{{").replace("}", "}}")
