"""Every operator and function, for every mix of NULL, values and types: what it gives against what is said here.

What is said here is plain Python over single values, None for NULL. Each expression is asked of dpsql three times: over
columns that may hold NULL (a row for each mix of values), over columns that cannot, and over literals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import TypeMismatch
from tests.language.people import LARGEST_EPSILON

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


I, R, B, T = "integer", "real", "boolean", "text"  # noqa: E741
ONE = ((I,), (R,))
TWO = tuple(product((I, R), repeat=2))
THREE = ((I, I, I), (R, I, R), (I, R, I), (R, R, R))
LIKE = (*TWO, (B, B), (T, T))

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
    return types[0] if rule.kind == "same" else rule.kind


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


# Types: which fit, by a rule for each function, for every mix of the five types and the bare NULL.
OTHER = "other"
NULL = "NULL"
KINDS = (I, R, B, T, OTHER, NULL)
NAMES = {I: "i", R: "r", B: "b", T: "s", OTHER: "d", NULL: "NULL"}


def numbers(kinds: set[str]) -> bool:
    return kinds <= {I, R}


def alike(kinds: set[str]) -> bool:
    return numbers(kinds) or kinds in ({B}, {T})


def conditions(kinds: set[str]) -> bool:
    return kinds <= {B}


FITS: tuple[tuple[str, int, Callable[[set[str]], bool]], ...] = (
    *((f"x {sign} y", 2, numbers) for sign in ("+", "-", "*", "/", "//", "%")),
    *((f"x {sign} y", 2, alike) for sign in ("=", "<>", "<", "<=", ">", ">=")),
    ("- x", 1, numbers),
    *((f"{name}(x)", 1, numbers) for name in ("ABS", "FLOOR", "CEIL", "ROUND", "LEAST", "GREATEST")),
    ("LEAST(x, y)", 2, numbers),
    ("GREATEST(x, y, z)", 3, numbers),
    ("CLAMP(x, y, z)", 3, numbers),
    ("COALESCE(x, y)", 2, alike),
    ("NULLIF(x, y)", 2, alike),
    ("x AND y", 2, conditions),
    ("x OR y", 2, conditions),
    ("NOT x", 1, conditions),
    ("x IS TRUE", 1, conditions),
    ("x IS NOT FALSE", 1, conditions),
    ("x IN (y, z)", 3, alike),
    ("x BETWEEN y AND z", 3, alike),
    ("x IS NULL", 1, lambda _kinds: True),
    ("x IS NOT NULL", 1, lambda _kinds: True),
)


@cache
def typed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "i": np.array([1, 2]),
            "r": [0.5, math.nan],
            "b": [True, False],
            "s": pd.Series(["a", None], dtype="str"),
            "d": pd.to_datetime(["2020-01-01", None]),
        }
    )


def type_mixes() -> Iterator[Any]:
    for text, arity, fits in FITS:
        for kinds in product(KINDS, repeat=arity):
            if arity == 3 and kinds[0] == NULL:
                continue  # NULL IN (i, b) is NULL = i OR NULL = b, and either fits
            spelt = "".join(NAMES[kinds["xyz".index(c)]] if c in "xyz" else c for c in text)
            yield spelt, fits({kind for kind in kinds if kind != NULL})


MIXES = list(type_mixes())


def test_types_that_fit_are_taken():
    for text, fits in MIXES:
        if fits:
            dpsql.query(typed(), f"SELECT COUNT({text}) FROM t", epsilon=1)


def test_types_that_do_not_fit_are_a_mismatch():
    for text, fits in MIXES:
        if not fits:
            with pytest.raises(TypeMismatch):  # noqa: PT012 - the second line says which was taken
                dpsql.query(typed(), f"SELECT COUNT({text}) FROM t", epsilon=1)
                pytest.fail(f"{text} was taken")


@pytest.mark.parametrize("column", ["s", "d"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
def test_what_is_no_number_cannot_be_summed(aggregate: str, column: str):
    with pytest.raises(TypeMismatch, match=rf'"{column}" is (text|other)'):
        dpsql.query(typed(), f"SELECT {aggregate}({column}) FROM t", epsilon=1)


@pytest.mark.parametrize(
    "clause", ["WHERE i", "WHERE r + 1", "WHERE s", "WHERE d", "HAVING COUNT(*)", "HAVING 'a'", "HAVING 1"]
)
def test_a_condition_must_be_one(clause: str):
    with pytest.raises(TypeMismatch):
        dpsql.query(typed(), f"SELECT COUNT(*) FROM t {clause}", epsilon=1)


@pytest.mark.parametrize("digits", ["1.5", "r", "'1'", "TRUE", "s", "d"])
def test_digits_are_whole_numbers(digits: str):
    with pytest.raises(TypeMismatch):
        dpsql.query(typed(), f"SELECT COUNT(ROUND(r, {digits})) FROM t", epsilon=1)


def test_rounding_to_null_digits_is_null():
    sql = "SELECT ROUND(1.5, NULL), ROUND(NULL, 1), COUNT(ROUND(r, NULL)) FROM t"
    assert list(dpsql.query(typed(), sql, epsilon=LARGEST_EPSILON)) == [(None, None, 0)]
