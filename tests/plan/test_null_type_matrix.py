"""Every operator and function, for every mix of NULL, values and types: what it gives against what is said here.

What is said here is plain Python over single values, None for NULL. Each expression is asked of dpsql three times: over
columns that may hold NULL (a row for each mix of values), over columns that cannot, and over literals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Call, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, StoredColumn, resolve
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from tests.sql.people import LARGEST_EPSILON

VALUES: dict[str, list[Any]] = {
    "integer": [None, -7, -1, 0, 2, 5],
    "real": [None, -2.5, -0.5, 0.0, 0.3, 3.0, math.inf, -math.inf],
    "boolean": [None, True, False],
    "text": [None, "", "a", "b"],
}
STORED = {"integer": ("Int64", "int64"), "real": ("float64", "float64"), "boolean": ("boolean", "bool")}
FAR = 1000
"""Results are clipped to +/- this, infinity too, so that they can be summed."""


@dataclass(frozen=True)
class Rule:
    """An expression over x, y, z, the types it is asked for, what it gives, and the type of that."""

    text: str
    types: tuple[tuple[str, ...], ...]
    gives: Callable[..., Any]
    kind: str
    inf: bool = True
    """False: not asked for infinity."""


def strict(compute: Callable[..., Any]) -> Callable[..., Any]:
    """NULL in, NULL out."""
    return lambda *args: None if None in args else compute(*args)


def number(result: float) -> float | None:
    return None if math.isnan(result) else result


def quotient(x: float, y: float) -> float | None:
    return None if y == 0 else number(x / y)


def truncated(x: float, y: float) -> float | None:
    if y == 0 or (math.isinf(x) and math.isinf(y)):
        return None
    return x / y if math.isinf(x) else float(math.trunc(x / y))


def remainder(x: float, y: float) -> float | None:
    return None if y == 0 or math.isinf(x) else math.fmod(x, y)


def times(x: float, y: float) -> float | None:
    return number(x * y)


def whole(rounded: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: x if math.isinf(x) else rounded(x)


def away(x: float, digits: int = 0) -> float:
    """Halves go away from zero."""
    size = 10.0**digits
    return math.copysign(math.floor(abs(x) * size + 0.5) / size, x)


def both(p: bool | None, q: bool | None) -> bool | None:
    return False if p is False or q is False else None if p is None or q is None else True


def either(p: bool | None, q: bool | None) -> bool | None:
    return True if p is True or q is True else None if p is None or q is None else False


def no(p: bool | None) -> bool | None:
    return None if p is None else not p


def among(x: Any, *listed: Any) -> bool | None:
    verdict: bool | None = False
    for each in listed:
        verdict = either(verdict, equal(x, each))
    return verdict


equal = strict(lambda x, y: x == y)
at_least = strict(lambda x, y: x >= y)


def between(x: Any, y: Any, z: Any) -> bool | None:
    return both(at_least(x, y), at_least(z, x))


def extreme(choose: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    def skip_null(*args: Any) -> Any:
        present = [each for each in args if each is not None]
        return choose(present) if present else None

    return skip_null


def first(*args: Any) -> Any:
    return next((each for each in args if each is not None), None)


def unless(x: Any, y: Any) -> Any:
    return None if equal(x, y) is True else x


def joined(between: str, *texts: str | None) -> str:
    return between.join(text for text in texts if text is not None)


I, R, B, T = "integer", "real", "boolean", "text"  # noqa: E741
ONE = ((I,), (R,))
TWO = tuple(product((I, R), repeat=2))
THREE = ((I, I, I), (R, I, R), (I, R, I), (R, R, R))
LIKE = (*TWO, (B, B), (T, T))
ARMS = ((B, I, I), (B, R, I), (B, B, B), (B, T, T))

RULES = (
    Rule("x + y", TWO, strict(lambda x, y: number(x + y)), R),
    Rule("x - y", TWO, strict(lambda x, y: number(x - y)), R),
    Rule("x * y", TWO, strict(times), R),
    Rule("x / y", TWO, strict(quotient), R),
    Rule("x // y", TWO, strict(truncated), R),
    Rule("x % y", TWO, strict(remainder), R),
    Rule("- x", ONE, strict(lambda x: -x), R),
    Rule("ABS(x)", ONE, strict(abs), R),
    Rule("FLOOR(x)", ONE, strict(whole(math.floor)), R),
    Rule("CEIL(x)", ONE, strict(whole(math.ceil)), R),
    Rule("ROUND(x)", ONE, strict(whole(away)), R),
    Rule("ROUND(x, 1)", ONE, strict(whole(lambda x: away(x, 1))), R),
    Rule("ROUND(x * 7, -1)", ONE, strict(whole(lambda x: away(x * 7 / 10) * 10)), R),
    Rule("ROUND(x, y)", ((I, I), (R, I)), strict(lambda x, y: away(x, y) if abs(y) < 3 else away(x / 10**-y) * 10**-y
    if y < 0 else x), R, inf=False), Rule("x = y", LIKE, equal, B),
    Rule("x <> y", LIKE, lambda x, y: no(equal(x, y)), B),
    Rule("x < y", LIKE, strict(lambda x, y: x < y), B),
    Rule("x <= y", LIKE, strict(lambda x, y: x <= y), B),
    Rule("x > y", LIKE, strict(lambda x, y: x > y), B),
    Rule("x >= y", LIKE, at_least, B),
    Rule("x BETWEEN y AND z", (*THREE, (T, T, T), (B, B, B)), between, B),
    Rule("x NOT BETWEEN y AND z", (*THREE, (T, T, T)), lambda x, y, z: no(between(x, y, z)), B),
    Rule("x IN (y, z)", (*THREE, (T, T, T), (B, B, B)), among, B),
    Rule("x NOT IN (y, z)", (*THREE, (T, T, T), (B, B, B)), lambda x, *rest: no(among(x, *rest)), B),
    Rule("x IN (2, 0.3)", ONE, lambda x: among(x, 2, 0.3), B),
    Rule("x IN (2, 0.3, NULL)", ONE, lambda x: among(x, 2, 0.3, None), B),
    Rule("x NOT IN (2, NULL)", ONE, lambda x: no(among(x, 2, None)), B),
    Rule("x IN ('a', '')", ((T,),), lambda x: among(x, "a", ""), B),
    Rule("x NOT IN ('a', NULL)", ((T,),), lambda x: no(among(x, "a", None)), B),
    Rule("x IN (TRUE)", ((B,),), lambda x: among(x, True), B),
    Rule("x IN (NULL)", ((I,), (R,), (B,), (T,)), lambda _x: None, B),
    Rule("x IS NULL", ((I,), (R,), (B,), (T,)), lambda x: x is None, B),
    Rule("x IS NOT NULL", ((I,), (R,), (B,), (T,)), lambda x: x is not None, B),
    Rule("x AND y", ((B, B),), both, B),
    Rule("x OR y", ((B, B),), either, B),
    Rule("NOT x", ((B,),), no, B),
    Rule("x IS TRUE", ((B,),), lambda x: x is True, B),
    Rule("x IS FALSE", ((B,),), lambda x: x is False, B),
    Rule("x IS NOT TRUE", ((B,),), lambda x: x is not True, B),
    Rule("x IS NOT FALSE", ((B,),), lambda x: x is not False, B),
    Rule("x AND y OR NOT x AND z", ((B, B, B),), lambda x, y, z: either(both(x, y), both(no(x), z)), B),
    Rule("LEAST(x, y)", TWO, extreme(min), R),
    Rule("GREATEST(x, y)", TWO, extreme(max), R),
    Rule("LEAST(x, y, z)", THREE, extreme(min), R),
    Rule("GREATEST(x, y, z)", THREE, extreme(max), R),
    Rule("LEAST(x)", ONE, lambda x: x, R),
    Rule("CLAMP(x, y, z)", THREE, strict(lambda x, y, z: min(max(x, y), z)), R),
    Rule("CLAMP(x, -1, 2)", ONE, strict(lambda x: min(max(x, -1), 2)), R),
    Rule("COALESCE(x)", ((I,), (R,), (B,), (T,)), lambda x: x, "same"),
    Rule("COALESCE(x, y)", LIKE, first, "same"),
    Rule("COALESCE(x, y, z)", (*THREE, (B, B, B), (T, T, T)), first, "same"),
    Rule("NULLIF(x, y)", LIKE, unless, "same"),
    Rule("x IS DISTINCT FROM y", LIKE, lambda x, y: x != y, B),
    Rule("x IS NOT DISTINCT FROM y", LIKE, lambda x, y: x == y, B),
    Rule("CASE WHEN x THEN y ELSE z END", ARMS, lambda x, y, z: y if x is True else z, "last"),
    Rule("CASE WHEN x THEN y END", ((B, I), (B, R), (B, B), (B, T)), lambda x, y: y if x is True else None, "last"),
    Rule("CASE x WHEN y THEN 2 WHEN z THEN 3 ELSE 5 END", ((I, I, R), (T, T, T), (B, B, B)), lambda x, y, z: 2
    if equal(x, y) else 3 if equal(x, z) else 5, R),
    Rule("IF(x, y, z)", ARMS, lambda x, y, z: y if x is True else z, "last"),
    Rule("CASE WHEN x THEN 2 WHEN NOT y THEN 3 END", ((B, B),), lambda x, y: 2 if x else 3 if y is False else None, R),
    Rule("LEAST(x, y)", ((T, T), (B, B)), extreme(min), "same"),
    Rule("GREATEST(x, y)", ((T, T), (B, B)), extreme(max), "same"),
    Rule("SIGN(x)", ONE, strict(lambda x: (x > 0) - (x < 0)), R),
    Rule("TRUNC(x)", ONE, strict(whole(math.trunc)), R),
    Rule("SQRT(x)", ONE, strict(lambda x: math.sqrt(x) if x >= 0 else None), R),
    Rule("LN(x)", ONE, strict(lambda x: math.log(x) if x > 0 else None), R),
    Rule("LOG10(x)", ONE, strict(lambda x: math.log10(x) if x > 0 else None), R),
    Rule("POWER(x, 2)", ONE, strict(lambda x: x**2), R),
    Rule("CAST(x AS BOOLEAN)", ONE, strict(bool), B),
    Rule("CAST(x AS INTEGER)", ((B,),), strict(int), R),
    Rule("CAST(x AS TINYINT)", ONE, strict(lambda x: None if math.isinf(x) else round(x)), R),
    Rule("TRY_CAST(x AS DOUBLE)", ((T,),), lambda _x: None, R),
    Rule("UPPER(x)", ((T,),), strict(str.upper), T),
    Rule("x || y", ((T, T),), strict(lambda x, y: x + y), T),
    Rule("CONCAT(x, y)", ((T, T),), lambda x, y: (x or "") + (y or ""), T),
    Rule("CONCAT_WS('', x, y)", ((T, T),), lambda x, y: (x or "") + (y or ""), T),
    Rule("LENGTH(x)", ((T,),), strict(len), R),
    Rule("LENGTH(CONCAT_WS('-', x, y))", ((T, T),), lambda x, y: len(joined("-", x, y)), R),
    Rule("CONCAT_WS(x, y, z)", ((T, T, T),), lambda x, *rest: None if x is None else joined(x, *rest), T),
    Rule("x LIKE y", ((T, T),), equal, B),
    Rule("x NOT LIKE 'a%'", ((T,),), strict(lambda x: not x.startswith("a")), B),
    Rule("STARTS_WITH(x, y)", ((T, T),), strict(str.startswith), B),
)  # fmt: skip
CASES = [pytest.param(rule, types, id=f"{rule.text} of {', '.join(types)}") for rule in RULES for types in rule.types]


def mixes(rule: Rule, types: Sequence[str]) -> list[tuple[Any, ...]]:
    lists = [[v for v in VALUES[kind] if rule.inf or not (isinstance(v, float) and math.isinf(v))] for kind in types]
    return list(product(*lists))


def columns(types: Sequence[str], rows: Sequence[tuple[Any, ...]], *, nullable: bool) -> pd.DataFrame:
    """A frame of the rows, with a number k for each; without `nullable` the columns' types have no room for NULL."""
    held: dict[str, Any] = {"k": np.arange(len(rows))}
    for name, kind, cells in zip("xyz", types, zip(*rows, strict=True), strict=False):
        if kind == "text":
            held[name] = pd.Series(cells, dtype="str")
        elif kind == "real":
            held[name] = np.array([math.nan if cell is None else cell for cell in cells])
        else:
            held[name] = pd.array([pd.NA if cell is None else cell for cell in cells], dtype=STORED[kind][not nullable])
    return pd.DataFrame(held)


def result_type(rule: Rule, types: Sequence[str]) -> str:
    return {"same": types[0], "last": types[-1]}.get(rule.kind, rule.kind)


def measured(text: str, kind: str) -> str:
    """Aggregates that show one row's result: whether it is NULL, and its value."""
    if kind == T:
        return f"COUNT({text}), SUM({text} = 'a'), SUM({text} = '')"
    value = text if kind == B else f"CLAMP({text}, -{FAR}, {FAR})"
    return f"COUNT({text}), SUM({value})"


def as_measured(result: Any, kind: str) -> tuple[float, ...]:
    if kind == T:
        return (int(result is not None), int(result == "a"), int(result == ""))
    return (int(result is not None), 0 if result is None else min(max(float(result), -FAR), FAR))


def asked(data: pd.DataFrame, rule: Rule, kind: str) -> list[tuple[Any, ...]]:
    sql = f"SELECT k, {measured(rule.text, kind)} FROM t GROUP BY k"
    return [
        row[1:] for row in dpsql.query(data, sql, epsilon=LARGEST_EPSILON, bounds={"k": (0, max(1, len(data) - 1))})
    ]


@pytest.mark.thinned(6)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("rule", "types"), CASES)
def test_over_columns(rule: Rule, types: tuple[str, ...], nullable: bool):
    rows = [row for row in mixes(rule, types) if nullable or None not in row]
    kind = result_type(rule, types)
    found = asked(columns(types, rows, nullable=nullable), rule, kind)
    for row, cells in zip(rows, found, strict=False):
        wanted = as_measured(rule.gives(*row), kind)
        assert cells == pytest.approx(wanted, abs=1e-3), f"{rule.text} of {row}"


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value + "'" if isinstance(value, str) else f"({value})".upper()


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("rule", "types"), CASES)
def test_over_literals(rule: Rule, types: tuple[str, ...]):
    rows = [row for row in mixes(rule, types) if math.inf not in row and -math.inf not in row]
    texts = [
        "".join(literal(dict(zip("xyz", row, strict=False))[c]) if c in "xyz" else c for c in rule.text) for row in rows
    ]
    for start in range(0, len(rows), 100):
        sql = f"SELECT {', '.join(texts[start : start + 100])}, COUNT(*) FROM t"
        answer = next(iter(dpsql.query(pd.DataFrame({"a": [1]}), sql, epsilon=1)))
        for row, text, cell in zip(rows[start:], texts[start:], answer[:-1], strict=False):
            wanted = rule.gives(*row)
            assert (cell is None) == (wanted is None), f"{text} is {cell}, not {wanted}"
            assert cell == pytest.approx(wanted), text


# Types: which fit, by a rule for each function, for every mix of the seven types and the bare NULL; and where NULL
# comes from NULL.
DATE = "date"
TIME = "timestamp"
OTHER = "other"
NULL = "NULL"
KINDS = (I, R, B, T, DATE, TIME, OTHER, NULL)
NAMES = {I: "i", R: "r", B: "b", T: "s", DATE: "d", TIME: "m", OTHER: "o", NULL: "NULL"}
Fits = Callable[[Sequence[str]], bool]
"""Of the types of the arguments; a bare NULL fits where anything would."""


def each(*wanted: set[str]) -> Fits:
    """One set of types for each argument."""
    return lambda kinds: all(kind in {*held, NULL} for kind, held in zip(kinds, wanted, strict=True))


def of_one_type(kinds: Sequence[str]) -> bool:
    """Numbers, or times, or all of one other type; nothing is compared with a type that is none of the language."""
    found = {kind for kind in kinds if kind != NULL}
    return found <= NUMBERS or found <= TIMES or (len(found) == 1 and found <= {B, T})


def choice(kinds: Sequence[str]) -> bool:
    """A condition, and values of one type."""
    return kinds[0] in (B, NULL) and of_one_type(kinds[1:])


def sum_of(kinds: Sequence[str]) -> bool:
    return each(NUMBERS, NUMBERS)(kinds) or set(kinds) in ({DATE, I}, {DATE, NULL})


def difference_of(kinds: Sequence[str]) -> bool:
    return each(NUMBERS, NUMBERS)(kinds) or each({DATE}, {DATE, I})(kinds) or set(kinds) <= TIMES | {NULL}


NUMBERS = {I, R}
TIMES = {DATE, TIME}
CASTABLE = {I, R, B, T}
WRITTEN = {I, R, B, T, DATE, TIME}
ANY = {I, R, B, T, DATE, TIME, OTHER}
STRICT, SKIPS, NEVER, OWN = "strict", "skips", "never", "own"
"""NULL where any argument is; where all are; nowhere; by a rule that stands among the RULES above."""
PARTS = (
    "century", "decade", "year", "isoyear", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow",
    "hour", "minute", "second", "millisecond", "microsecond", "epoch",
)  # fmt: skip
UNITS = (
    "century", "decade", "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond",
    "microsecond",
)  # fmt: skip
WIDTHS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DOUBLE", "FLOAT",
    "DECIMAL(9, 2)", "BOOLEAN",
)  # fmt: skip

SPELT: tuple[tuple[str, Fits, str], ...] = (
    ("x + y", sum_of, STRICT),
    ("x - y", difference_of, STRICT),
    *((f"x {sign} y", each(NUMBERS, NUMBERS), STRICT) for sign in ("*", "/", "//", "%", "^", "**")),
    ("- x", each(NUMBERS), STRICT),
    ("@ (x)", each(NUMBERS), STRICT),
    *((f"{name}(x)", each(NUMBERS), STRICT) for name in ("ABS", "SIGN", "FLOOR", "CEIL", "CEILING", "ROUND", "TRUNC",
        "SQRT", "CBRT", "EXP", "LN", "LOG", "LOG10", "LOG2", "SIN", "COS", "TAN", "DEGREES", "RADIANS")),
    *((f"{name}(x, y)", each(NUMBERS, {I}), STRICT) for name in ("ROUND", "TRUNC")),
    *((f"{name}(x, y)", each(NUMBERS, NUMBERS), STRICT) for name in ("LOG", "POWER", "POW", "MOD")),
    ("PI()", each(), NEVER),
    *((f"x {sign} y", of_one_type, STRICT) for sign in ("=", "==", "<>", "!=", "<", "<=", ">", ">=")),
    ("x IS DISTINCT FROM y", of_one_type, NEVER),
    ("x IS NOT DISTINCT FROM y", of_one_type, NEVER),
    ("x IN (y, z)", of_one_type, OWN),
    ("x IN (1, 2)", each(NUMBERS), STRICT),
    ("x NOT IN ('2', '3')", each({T}), STRICT),
    ("x IN (DATE '2020-02-29', DATE '2020-01-01')", each(TIMES), STRICT),
    ("x BETWEEN y AND z", of_one_type, OWN),
    ("x IS NULL", each(ANY), NEVER),
    ("x IS NOT NULL", each(ANY), NEVER),
    ("CASE WHEN x THEN y ELSE z END", choice, OWN),
    ("IF(x, y, z)", choice, OWN),
    ("CASE x WHEN y THEN 1 END", of_one_type, OWN),
    ("COALESCE(x)", of_one_type, SKIPS),
    ("COALESCE(x, y)", of_one_type, SKIPS),
    ("IFNULL(x, y)", of_one_type, SKIPS),
    ("NULLIF(x, y)", of_one_type, OWN),
    *((f"{name}({args})", of_one_type, SKIPS) for name in ("LEAST", "GREATEST") for args in ("x", "x, y", "x, y, z")),
    ("CLAMP(x, y, z)", of_one_type, STRICT),
    ("x AND y", each({B}, {B}), OWN),
    ("x OR y", each({B}, {B}), OWN),
    ("NOT x", each({B}), STRICT),
    ("x IS TRUE", each({B}), NEVER),
    ("x IS FALSE", each({B}), NEVER),
    ("x IS NOT FALSE", each({B}), NEVER),
    *((f"{word}(x AS {width})", each(CASTABLE), STRICT) for width in WIDTHS for word in ("CAST", "TRY_CAST")),
    ("x::TEXT", each(ANY - {OTHER}), STRICT),
    ("CAST(x AS DATE)", each({T, DATE, TIME}), STRICT),
    ("CAST(x AS TIMESTAMP)", each({T, DATE, TIME}), STRICT),
    ("MAKE_DATE(x, y, z)", each({I}, {I}, {I}), STRICT),
    *((f"EXTRACT({part} FROM x)", each(TIMES), STRICT) for part in PARTS),
    *((f"{name}(x)", each(TIMES), STRICT) for name in ("YEAR", "MONTH", "DAY", "HOUR", "QUARTER", "WEEK", "EPOCH",
        "LAST_DAY", "DAYNAME", "MONTHNAME", "DAYOFWEEK", "DAYOFYEAR", "CENTURY", "WEEKDAY")),
    *((f"DATE_TRUNC('{unit}', x)", each(TIMES), STRICT) for unit in UNITS),
    *((f"DATE_DIFF('{unit}', x, y)", each(TIMES, TIMES), STRICT) for unit in UNITS),
    *((f"x + INTERVAL (y) {unit}", each(TIMES, {I}), STRICT) for unit in UNITS),
    ("x - INTERVAL (y) DAY", each(TIMES, {I}), STRICT),
    ("INTERVAL (y) HOUR + x", each(TIMES, {I}), STRICT),
    ("DATE_ADD(x, INTERVAL (y) MONTH)", each(TIMES, {I}), STRICT),
    *((f"{name}(x)", each({T}), STRICT) for name in ("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "LENGTH", "REVERSE")),
    *((f"{name}(x, y)", each({T}, {T}), STRICT) for name in ("TRIM", "LTRIM", "RTRIM", "STRPOS", "STARTS_WITH",
        "ENDS_WITH", "CONTAINS", "PREFIX", "SUFFIX")),
    *((f"{name}(x, y)", each({T}, {I}), STRICT) for name in ("LEFT", "RIGHT", "REPEAT", "SUBSTRING", "SUBSTR")),
    ("SUBSTRING(x, y, z)", each({T}, {I}, {I}), STRICT),
    ("SUBSTRING(x FROM y FOR z)", each({T}, {I}, {I}), STRICT),
    ("POSITION(y IN x)", each({T}, {T}), STRICT),
    ("x || y", each(WRITTEN, WRITTEN), STRICT),
    ("SPLIT_PART(x, y, z)", each({T}, {T}, {I}), STRICT),
    ("REGEXP_MATCHES(x, 'a')", each({T}), STRICT),
    ("REGEXP_FULL_MATCH(x, 'a.*')", each({T}), STRICT),
    ("REGEXP_EXTRACT(x, 'a')", each({T}), STRICT),
    ("REGEXP_REPLACE(x, 'a', 'b')", each({T}), STRICT),
    ("REGEXP_REPLACE(x, 'a', 'b', 'g')", each({T}), STRICT),
    ("CONCAT(x, y)", each(WRITTEN, WRITTEN), OWN),  # never NULL: what is NULL is left out
    ("CONCAT_WS(x, y, z)", each(WRITTEN, WRITTEN, WRITTEN), OWN),  # NULL where x is
    ("REPLACE(x, y, z)", each({T}, {T}, {T}), STRICT),
    ("LPAD(x, y, z)", each({T}, {I}, {T}), STRICT),
    ("RPAD(x, y, z)", each({T}, {I}, {T}), STRICT),
    *((f"x {word} y", each({T}, {T}), STRICT) for word in ("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE", "^@")),
    ("x LIKE y ESCAPE '!'", each({T}, {T}), STRICT),
)  # fmt: skip
UNSUPPORTED = re.compile(r"CAST|::")
"""Casts that there are not are UnsupportedSQL, not a TypeMismatch."""
NOTHING_THERE = {("CAST(x AS DATE)", (T,)), ("CAST(x AS TIMESTAMP)", (T,))}
"""'1' is no date."""


def spelt(text: str, names: Sequence[str]) -> str:
    """The expression with these for x, y and z."""
    return re.sub(r"\b[xyz]\b", lambda found: names["xyz".index(found[0])], text)


def arity(text: str) -> int:
    return len(set(re.findall(r"\b[xyz]\b", text)))


def type_mixes(text: str) -> Iterator[tuple[str, ...]]:
    for kinds in product(KINDS, repeat=arity(text)):
        if len(kinds) < 3 or kinds[0] != NULL:  # NULL IN (i, b) is NULL = i OR NULL = b, and either fits
            yield kinds


CELLS: dict[str, Any] = {I: 2, R: 0.5, B: True, T: "1"}
TYPES = {"d": "date", "n_d": "date"}


@cache
def typed() -> pd.DataFrame:
    """A row with a value of each type, and one of NULL; the columns n_... hold NULL alone, n_f a NaN."""
    days = pd.to_datetime(["2020-02-29 10:00", None]).astype("datetime64[us]")
    none = [None, None]
    return pd.DataFrame(
        {
            "i": pd.array([2, None], dtype="Int64"),
            "r": [0.5, math.nan],
            "b": pd.array([True, None], dtype="boolean"),
            "s": pd.Series(["1", None], dtype="str"),
            "d": days.normalize(),
            "m": days,
            "o": pd.to_timedelta([1, None], unit="D"),
            "n_i": pd.array(none, dtype="Int64"),
            "n_r": [math.nan, math.nan],
            "n_f": pd.Series([0.0, 0.0], dtype="Float64") / 0,
            "n_b": pd.array(none, dtype="boolean"),
            "n_s": pd.Series(none, dtype="str"),
            "n_d": pd.to_datetime(none).astype("datetime64[us]"),
            "n_m": pd.to_datetime(none).astype("datetime64[us]"),
            "n_o": pd.to_timedelta(none),
        }
    )


def counts(texts: Sequence[str], *, rows: int = 2) -> dict[str, int]:
    """How many of the rows each expression is not NULL in."""
    found: dict[str, int] = {}
    for start in range(0, len(texts), 100):
        part = texts[start : start + 100]
        sql = f"SELECT {', '.join(f'COUNT({text})' for text in part)} FROM t"
        result = dpsql.query(typed().iloc[:rows], sql, epsilon=LARGEST_EPSILON, types=TYPES)
        found.update(zip(part, next(iter(result)), strict=True))
    return found


SPELLINGS = [pytest.param(text, fits, rule, id=text) for text, fits, rule in SPELT]


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("text", "fits", "_rule"), SPELLINGS)
def test_types_that_fit_are_taken_and_no_others(text: str, fits: Fits, _rule: str):
    taken = []
    for kinds in type_mixes(text):
        expression = spelt(text, [NAMES[kind] for kind in kinds])
        if fits(kinds):
            taken.append(expression)
            continue
        refused = (TypeMismatch, UnsupportedSQL) if UNSUPPORTED.search(text) else TypeMismatch
        try:
            dpsql.query(typed(), f"SELECT COUNT({expression}) FROM t", epsilon=1, types=TYPES)
        except refused:
            continue
        pytest.fail(f"{expression} was taken")
    assert taken
    assert list(counts(taken)) == list(counts(taken, rows=0))


@pytest.mark.parametrize(("text", "fits", "rule"), [each for each in SPELLINGS if each.values[2] != OWN])
def test_null_comes_from_null(text: str, fits: Fits, rule: str):
    """A NULL in each place in turn: in a cell, as NaN, and as the word."""
    wanted: dict[str, int] = {}
    for kinds in product(KINDS[:-1], repeat=arity(text)):
        if not fits(kinds) or (text, kinds) in NOTHING_THERE:
            continue
        names = [NAMES[kind] for kind in kinds]
        wanted[spelt(text, names)] = 2 if rule == NEVER else 1
        for place, kind in enumerate(kinds):
            for null in [f"n_{NAMES[kind]}", *(["n_f"] if kind == R else []), "NULL"]:
                holed = [*names[:place], null, *names[place + 1 :]]
                wanted[spelt(text, holed)] = {NEVER: 2, STRICT: 0, SKIPS: int(len(kinds) > 1)}[rule]
    assert counts(list(wanted)) == wanted


def test_every_function_is_spelt_above():
    met: set[str] = set()
    stored = [StoredColumn(name, kind, nullable=True, storage="") for name, kind in
              [("i", Type.INTEGER), ("r", Type.REAL), ("b", Type.BOOLEAN), ("s", Type.TEXT), ("d", Type.DATE),
               ("m", Type.TIMESTAMP), ("o", Type.OTHER)]]  # fmt: skip
    catalog = Catalog({"t": resolve("t", stored, Declaration.of(None, None, None))})
    for text, fits, _rule in SPELT:
        for kinds in product(KINDS[:-1], repeat=arity(text)):
            if fits(kinds):
                sql = f"SELECT COUNT({spelt(text, [NAMES[kind] for kind in kinds])}) FROM t"
                for aggregation in plan_of(sql, catalog)[0].query.plan.aggregations:
                    parts = walk(aggregation.argument) if aggregation.argument is not None else ()
                    met |= {part.function.name for part in parts if isinstance(part, Call)}
    assert set(FUNCTIONS) - met == {"pi", "of_steps"}  # a constant, and what a window of reals makes


@pytest.mark.parametrize(("column", "kind"), [("s", T), ("d", DATE), ("m", TIME), ("o", OTHER)])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
def test_what_is_no_number_cannot_be_summed(aggregate: str, column: str, kind: str):
    with pytest.raises(TypeMismatch, match=rf'"{column}" is {kind}'):
        dpsql.query(typed(), f"SELECT {aggregate}({column}) FROM t", epsilon=1, types=TYPES)


@pytest.mark.parametrize("column", ["i", "r", "s", "d", "m", "o", "1", "'a'", "r + 1"])
def test_conditions_of_aggregates_are_conditions(column: str):
    for aggregate in (f"COUNT_IF({column})", f"SUM(i) FILTER (WHERE {column})"):
        with pytest.raises(TypeMismatch):
            dpsql.query(typed(), f"SELECT {aggregate} FROM t", epsilon=1, types=TYPES, bounds={"i": (0, 9)})


def test_aggregates_of_null_alone():
    sql = "SELECT COUNT(NULL), SUM(NULL), AVG(NULL), COUNT_IF(NULL), COUNT(*) FILTER (WHERE NULL) FROM t"
    assert list(dpsql.query(typed(), sql, epsilon=LARGEST_EPSILON)) == [(0, 0, None, 0, 0)]


@pytest.mark.parametrize("column", ["n_i", "n_r", "n_f", "n_b"])
def test_aggregates_of_cells_that_are_null(column: str):
    sql = f"SELECT COUNT({column}), SUM({column}), AVG({column}), COUNT(*) FROM t WHERE {column} IS NULL"
    bounds = {} if column == "n_b" else {column: (0, 9)}
    assert list(dpsql.query(typed(), sql, epsilon=LARGEST_EPSILON, bounds=bounds)) == [
        (0, pytest.approx(0, abs=1e-6), None, 2)
    ]


@pytest.mark.parametrize("column", ["b", "s", "d", "m"])
def test_null_is_one_group(column: str):
    sql = f"SELECT {column}, COUNT(*) FROM t GROUP BY {column}"
    rows = pd.concat([typed()] * 3)
    found = list(dpsql.query(rows, sql, epsilon=LARGEST_EPSILON, delta=1e-6, types=TYPES))
    assert [row[1] for row in found if row[0] is None] == [3]
    assert sum(row[1] for row in found) == 6


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN NULL THEN 2 WHEN NULL THEN 3 WHEN NOT NULL THEN 5 END",
        "NULL + INTERVAL 1 DAY",
        "NULL - d",
        "NULL - DATE '2020-01-01'",
        "NULL + NULL",
        "DATE_ADD(NULL, INTERVAL NULL DAY)",
        "EXTRACT(YEAR FROM NULL)",
        "CAST(NULL AS DATE)",
        "NULL || NULL",
        "NULL LIKE NULL",
        "LEAST(NULL, NULL, NULL, NULL)",
        "@NULL",
    ],
)
def test_expressions_of_bare_null_are_null(text: str):
    assert counts([text]) == {text: 0}


@pytest.mark.parametrize(
    "clause", ["WHERE i", "WHERE r + 1", "WHERE s", "WHERE d", "WHERE o", "HAVING COUNT(*)", "HAVING 'a'", "HAVING 1"]
)
def test_a_condition_must_be_one(clause: str):
    with pytest.raises(TypeMismatch):
        dpsql.query(typed(), f"SELECT COUNT(*) FROM t {clause}", epsilon=1)


@pytest.mark.parametrize("digits", ["1.5", "r", "'1'", "TRUE", "s", "d", "o"])
def test_digits_are_whole_numbers(digits: str):
    with pytest.raises(TypeMismatch):
        dpsql.query(typed(), f"SELECT COUNT(ROUND(r, {digits})) FROM t", epsilon=1)


def test_rounding_to_null_digits_is_null():
    sql = "SELECT ROUND(1.5, NULL), ROUND(NULL, 1), COUNT(ROUND(r, NULL)) FROM t"
    assert list(dpsql.query(typed(), sql, epsilon=LARGEST_EPSILON)) == [(None, None, 0)]
