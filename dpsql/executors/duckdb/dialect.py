"""DuckDB's SQL (see `dpsql.executors.sql.dialect.Dialect`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, isfinite

from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Call, Literal
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass

_TYPES: Mapping[Type, str] = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
    Type.OTHER: "BOOLEAN",
    Type.OBJECT: "BOOLEAN",
}
_HALF_EVEN = "6755399441055744.0e0"
"""1.5 * 2^52: adding and then subtracting it rounds a double to whole numbers."""
_MARK = "\0{}\0"


@dataclass(frozen=True)
class DuckDBDialect:
    """of, passes: the statement covers the units of pass `of` out of `passes`."""

    of: int = 0
    passes: int = 1
    name = "duckdb"

    def type_name(self, kind: Type) -> str:
        return _TYPES[kind]

    def literal(self, value: Key, kind: Type) -> str:
        """Return a constant without a cast that might fail, even if this one never does: the engine applies conditions
        with such a cast after a join, not to the rows below it."""
        if kind is Type.REAL and value is not None and is_plain(float(value)):
            return f"({float(value)!r}{'' if 'e' in repr(float(value)) else 'e0'})"
        word = "TRY_CAST" if value is not None and (kind.temporal or kind is Type.REAL) else "CAST"
        return f"{word}({_bare(value, kind)} AS {_TYPES[kind]})"

    def call(self, call: Call, args: list[str]) -> str:
        """Write a call. Integer arguments are bare, as digits of a DECIMAL must be. They have 32 bits, and so may the
        result of a choice, which is therefore cast."""
        written = [
            _bare(each.value, each.type) if isinstance(each, Literal) and _is_integer(each) else text
            for each, text in zip(call.args, args, strict=True)
        ]
        text = call.function.emit([each.type for each in call.args], call.type, written)
        narrow = call.type is Type.INTEGER and any(map(_is_integer, call.args))
        return f"CAST({text} AS BIGINT)" if narrow else text

    def mentions(self, call: Call) -> list[int]:
        marks = [_MARK.format(place) for place in range(len(call.args))]
        text = call.function.emit([each.type for each in call.args], call.type, marks)
        return [text.count(mark) for mark in marks]

    def whole(self, text: str, kind: Type) -> str:
        if kind is Type.DATE:
            return f"CAST({text} - DATE '1970-01-01' AS BIGINT)"
        if kind is Type.TIMESTAMP:
            return f"epoch_us({text})"
        return text if kind is Type.INTEGER else f"CAST({text} AS BIGINT)"

    def moment(self, text: str, kind: Type) -> str:
        return f"make_timestamp({text})" if kind is Type.TIMESTAMP else f"DATE '1970-01-01' + CAST({text} AS INTEGER)"

    def rounded(self, text: str) -> str:
        return f"CAST(({text} + {_HALF_EVEN}) - {_HALF_EVEN} AS BIGINT)"

    def text_limbs(self, key: str, text: str) -> tuple[str, str]:
        made = f"CAST(md5_number_lower('{key}' || {text}) & 1152921504606846975 AS BIGINT)"
        return f"({made} & 1073741823)", f"({made} >> 30)"

    wide = "HUGEINT"
    counts_first = True
    sound_text = None

    def total(self, text: str, most: int, where: str = "") -> str:  # noqa: ARG002
        """Return the sum; SUM of BIGINT is a HUGEINT."""
        return f"SUM({text}){where}"

    def quotient(self, text: str, by: str) -> str:
        return f"{text} // {by}"

    def halves(self, total: str) -> tuple[str, str]:
        low = f"CAST({total} & CAST({2**32 - 1} AS HUGEINT) AS DOUBLE)"
        high = f"CAST({total} >> 32 AS DOUBLE) * 4294967296.0e0"
        return high, low

    def ordered_sum(self, text: str) -> str:
        return f"SUM({text} ORDER BY {text})"

    def windowed(self, function: str, args: Sequence[str], nulls: str) -> str:
        return f"{function}({', '.join(args)}{nulls})"

    def pair(self, number: str, value: str) -> str:
        return f"{{'number': {number}, 'value': {value}}}"

    def second_of(self, pair: str) -> str:
        return f"struct_extract({pair}, 'value')"

    def all_but(self, names: Sequence[str]) -> str:
        return f"* EXCLUDE ({', '.join(names)})"

    def head(self, named: Mapping[str, str]) -> str:
        texts = ", ".join(f"{name} AS MATERIALIZED ({text})" for name, text in named.items())
        return f"WITH {texts} " if texts else ""

    def edges_below(self, edges: Sequence[float], number: str) -> None:  # noqa: ARG002
        return None

    def of_pass(self, unit: str) -> str | None:
        return None if self.passes == 1 else f"hash({unit}) % {self.passes} = {self.of}"

    def place_in(self, values: Sequence[Key], kind: Type, value: str) -> None:  # noqa: ARG002 - a join takes no longer
        return None

    def greatest_below(self, rows: str, edges: str, value: str, edge: str) -> str:
        return f"{rows} ASOF LEFT JOIN {edges} ON {value} > {edge}"


def is_plain(value: float) -> bool:
    """Return whether digits express a double exactly: not for infinities, and not for -0.0."""
    return isfinite(value) and (value != 0 or copysign(1, value) > 0)


def _is_integer(expr: object) -> bool:
    return isinstance(expr, Literal) and expr.type is Type.INTEGER and expr.value is not None


def _bare(value: Key, kind: Type) -> str:
    if value is None:
        return "NULL"
    if kind is Type.TEXT:
        return quoted(str(value))
    if kind is Type.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind is Type.REAL:
        return f"'{float(value)!r}'"
    if kind is Type.DATE:
        return f"'{show_date(int(value))}'"
    if kind is Type.TIMESTAMP:
        return f"'{show_timestamp(int(value))}'"
    return f"({int(value)})" if int(value) < 0 else str(int(value))


def quoted(text: str) -> str:
    """Return a quoted text; the engine's parser accepts every character except NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MissingFeature("text with half a character in it") from None
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


DUCKDB_SQL = DuckDBDialect()
