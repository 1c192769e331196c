"""The whole language against small tables: a table with a column of every type, queries of every kind, and checks that
hold for the honest engine and fail under planted lies."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import dpsql
from dpsql.errors import DPSQLError, InvalidPrivacyParameter
from dpsql.session import prepare
from tests.core import checks
from tests.core.checks import INF, NAN, B, Row, Shape, U, calibrated, series

HUGE = 10**6


# One table with a column of every type


def day(text: str | None) -> Any:
    return pd.NaT if text is None else pd.Timestamp(text)


PEOPLE = Shape(
    {
        "i": "int64", "n": "Int64", "x": "float64", "u": "float64", "b": "boolean", "g": "str", "h": "str",
        "d": "str", "t": "datetime64[us]",
    },
    {
        "bounds": {"i": (-2, 5), "n": (1, 4), "x": (-1, 2), "d": ("2020-01-30", "2020-03-02")},
        "types": {"d": "date"},
    },
)  # fmt: skip
CELLS: dict[str, list[Any]] = {
    "i": [-2, 0, 3, 5, 9, -7],
    "n": [None, 1, 2, 4, 9],
    "x": [NAN, INF, -INF, -1.0, 0.25, 2.0, 1e300, -0.0, 5e-324],
    "u": [NAN, INF, -INF, 1e308, -3.5, 0.0, 0.5, -0.0],
    "b": [True, False, None],
    "g": ["a", "b", "zz", None, 5, "", "A ", "%", "é"],
    "h": ["a", "b", "c", None, "12", "2020-02-30", " x"],
    "d": [None, "2020-01-31", "2020-02-29", "2020-03-02", "1999-01-01", dt.date(2020, 2, 1), "x", 7],
    "t": [
        day(None),
        day("2020-02-29 23:59:59.999999"),
        day("0001-01-01"),
        day("9999-12-31 23:59:59"),
        day("1970-01-01"),
    ],
}
UNIVERSE: tuple[Row, ...] = (
    (-2, None, NAN, 0.5, None, None, None, None, day(None)),
    (5, 4, 2.0, INF, True, "a", "b", "2020-02-29", day("2020-02-29 23:59:59.999999")),
    (9, 9, INF, -INF, False, "b", "a", "1999-01-01", day("9999-12-31 23:59:59")),
    (0, 1, -0.0, 1e308, True, "zz", "12", "x", day("0001-01-01")),
    (3, None, 0.25, NAN, False, 5, "c", dt.date(2020, 1, 31), day("1970-01-01")),
)


def rows(rng: random.Random, count: int) -> list[Row]:
    """Different rows (up to how they print)."""
    found = [tuple(rng.choice(CELLS[name]) for name in PEOPLE.dtypes) for _ in range(count)]
    return list({repr(row): row for row in found}.values())


# A query of every kind


@dataclass(frozen=True)
class Asked:
    """A query that is accepted, what is declared beside the shape's own facts, and how it is answered."""

    sql: str
    more: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sql


DELTA: dict[str, Any] = {"delta": 1e-6}
LIST: dict[str, Any] = {"keys": {"g": ["b", "a"], "h": ["a", None, "zz"], "n": [4, 2], "b": [True]}}
OWN = "COUNT(*, epsilon => 0.25), SUM(i, epsilon => 0.5)"
TEXT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"

SUMS = (
    "CASE WHEN n > 2 THEN n ELSE 10 - n END",
    "CASE WHEN n > 2 THEN n WHEN n <= 2 THEN -n ELSE 7 END",
    "CASE WHEN x < 0.5 THEN i WHEN i > 3 THEN x END",
    "CASE WHEN u > i THEN 1 WHEN i >= u THEN i ELSE 5 END",
    "CASE WHEN b THEN i WHEN NOT b THEN -i ELSE 9 END",
    "CASE n WHEN 1 THEN 10 WHEN 4 THEN 40 ELSE n END",
    "CASE WHEN NULL THEN 99 ELSE i END",
    "CASE WHEN u BETWEEN 0 AND 9 THEN u ELSE 0 END",
    "CASE WHEN u < 0 THEN 0 WHEN u > 7 THEN 7 ELSE u END",
    "COALESCE(CASE WHEN u < 0 THEN 0 WHEN u > 7 THEN 7 ELSE u END, 3)",
    "IF(n IS NULL, -3, n)",
    "COALESCE(n, x, 1)", "COALESCE(NULLIF(i, 3), -9)", "NULLIF(n, 4)",
    "CAST(x AS INTEGER)", "CAST(CLAMP(u, -9, 9) AS DECIMAL(3, 1))", "CLAMP(TRY_CAST(h AS INTEGER), 0, 20)",
    "CAST(b AS INTEGER)", "LENGTH(LEFT(h || g, 3))", "STRPOS(LEFT(g, 5), 'a')", "LENGTH(LPAD(g, 4, '-'))",
    "EXTRACT(day FROM d)", "EXTRACT(year FROM CLAMP(t, TIMESTAMP '1960-01-01', TIMESTAMP '2030-01-01'))",
    "DATE_DIFF('day', d, DATE '2020-02-01')",
    "EXTRACT(month FROM d + INTERVAL (i) MONTH)", "SIGN(u)", "FLOOR(x * 10)", "i % 3", "i // n", "LN(n)", "SQRT(x)",
    "POWER(n, 2)", "ROUND(x, 1)", "CLAMP(1 / u, -1, 1)", "i > 2",
)  # fmt: skip
KEYS = (
    "b", "i", "n", "i > 2", "n > 2", "n IS NULL", "n % 2", "FLOOR(x)", "ROUND(x)", "n + i", "-n", "ABS(i)",
    "CASE WHEN i > 2 THEN 'high' WHEN n < 2 THEN 'odd' END", "CASE WHEN n > 2 THEN n END",
    "CASE WHEN g = 'a' THEN h ELSE g END", "CASE WHEN b THEN g ELSE 'none' END", "COALESCE(g, 'none')",
    "COALESCE(g, h)", "UPPER(g)", "g || h", "LEFT(g, 1)", "LENGTH(g)", "g LIKE 'a%'", "g IS NULL", "NULLIF(g, 'a')",
    "CAST(b AS TEXT)", "EXTRACT(month FROM d)", "d", "DATE_TRUNC('month', d)", "EXTRACT(dow FROM t)", "i, b", "g, h",
    "n, g", "i > 2, n, b", "b AND n > 2", "LEAST(n, 3)", "CAST(x AS INTEGER)",
)  # fmt: skip
CONDITIONS = (
    "n > 2", "n IN (1, 2)", "NOT n > 2", "u > 0 OR n = 4", "g LIKE '%a%'", "h ILIKE 'A'", "b IS NOT TRUE",
    "n IS DISTINCT FROM 4", "CASE WHEN b THEN n ELSE i END > 1", "d BETWEEN DATE '2020-02-01' AND DATE '2020-02-29'",
    "t < TIMESTAMP '1970-01-02'", "COALESCE(b, i > 2)", "LENGTH(g) = 1", "i BETWEEN 0 AND 3", "x IS NULL OR x > 1",
)  # fmt: skip
WHOLE = (
    Asked("SELECT COUNT(*) FILTER (WHERE n > 2), COUNT_IF(b), SUM(i) FILTER (WHERE b), AVG(n) FILTER (WHERE i > 2) "
          "FROM t"),
    Asked("SELECT COUNT(*) FILTER (WHERE NULL), SUM(i) FILTER (WHERE TRUE), COUNT(*) FILTER (WHERE TRUE) FROM t"),
    Asked("SELECT SUM(x) FILTER (WHERE x > 0.5), AVG(x) FILTER (WHERE x <= 0.5) FROM t WHERE i >= 0"),
    Asked("SELECT COUNT(*), SUM(n) FROM t WHERE n > :low AND g <> :name",
          options={"params": {"low": 1.5, "name": "a"}}),
    Asked("SELECT SUM(CLAMP(u, :low, :high)) FROM t", options={"params": {"low": -2, "high": 3}}),
    Asked("SELECT SUM(COALESCE(n, :p)) FROM t", options={"params": {"p": None}}),
    Asked("SELECT COUNT(*) FROM t WHERE d < :day AND b = :yes",
          options={"params": {"day": dt.date(2020, 2, 9), "yes": True}}),
    Asked("SELECT g, COUNT(*) FROM t GROUP BY g", LIST),
    Asked("SELECT h, COUNT(*), AVG(i) FROM t GROUP BY h", LIST),
    Asked("SELECT n, SUM(x) FROM t GROUP BY n", LIST),
    Asked("SELECT g, h, n, COUNT(*) FROM t GROUP BY g, h, n", LIST),
    Asked("SELECT g, COUNT(*) FROM t WHERE g <> 'a' GROUP BY g", LIST),
    Asked("SELECT UPPER(g), COUNT(*) FROM t GROUP BY UPPER(g)", LIST),
    Asked("SELECT COALESCE(h, g), SUM(i) FROM t GROUP BY 1", LIST),
    Asked("SELECT g || h, SUM(i) FROM t GROUP BY 1", LIST),
    Asked("SELECT h, COUNT(*) FROM t GROUP BY h", {"keys": {"h": ["b", None]}, "nullable": {"h": False}}),
    Asked("SELECT DISTINCT g FROM t", options=DELTA),
    Asked("SELECT DISTINCT b, i > 2 FROM t WHERE n > 1"),
    Asked("SELECT COUNT(*), SUM(a), AVG(c) FROM (SELECT i + n AS a, x AS c FROM t WHERE n > 1) WHERE c > 0.5"),
    Asked("WITH p AS (SELECT *, i * 2 AS twice FROM t WHERE b), q AS (SELECT twice, g FROM p WHERE twice < 8) "
          "SELECT g, SUM(twice) FROM q GROUP BY g", options=DELTA),
    Asked("SELECT k, COUNT(*) FROM (SELECT CASE WHEN n > 2 THEN 'x' END AS k, i FROM t WHERE i > 0) "
          "WHERE i < 5 GROUP BY k"),
    Asked("SELECT MAX(c), SUM(s) FROM (SELECT g, COUNT(*) AS c, SUM(i) AS s FROM t GROUP BY g) WHERE c > 1", LIST),
    Asked(f"SELECT {OWN}, AVG(x) FROM t"),
    Asked(f"SELECT {OWN} FROM t"),
    Asked(f"SELECT {OWN} FROM t WHERE b"),
    Asked(f"SELECT g, {OWN}, AVG(n) FROM t GROUP BY g", LIST),
    Asked(f"SELECT g, {OWN}, AVG(n), COUNT(n, epsilon => 0.05) FROM t GROUP BY g", options=DELTA),
    Asked("SELECT AVG(i, epsilon => 0.125), AVG(i, epsilon => 0.25), AVG(i) FROM t"),
    Asked("SELECT SUM(u, contribution_bounds_per_row => (-2, 3)), AVG(i, contribution_bounds_per_group => (0, 1)) "
          "FROM t"),
    Asked(f"{TEXT} (epsilon = 0.5, delta = 1e-7, min_privacy_units_per_group = 3) g, COUNT(*) FROM t GROUP BY g",
          options=DELTA),
    Asked(f"{TEXT} (group_selection_strategy = LAPLACE_THRESHOLD) b, SUM(i) FROM t GROUP BY b", options=DELTA),
    Asked(f"{TEXT} (group_selection_strategy = GAUSSIAN_THRESHOLD) h, AVG(x) FROM t GROUP BY h", LIST, DELTA),
    Asked(f"{TEXT} (group_selection_strategy = PUBLIC_GROUPS) h, AVG(x) FROM t GROUP BY h", LIST),
)  # fmt: skip


def every_query() -> list[Asked]:
    """Every kind of expression and key once, and whole queries of every form."""
    sums = [f"SELECT SUM({each}), COUNT({each}), AVG({each}) FROM t" for each in SUMS]
    keys = [f"SELECT {each}, COUNT(*), SUM(n) FROM t GROUP BY {each}" for each in KEYS]
    where = [f"SELECT COUNT(*), SUM(n), AVG(x) FROM t WHERE {each}" for each in CONDITIONS]
    return [*map(Asked, sums), *(Asked(each, {}, DELTA) for each in keys), *map(Asked, where), *WHOLE]


# Random expressions of the whole language


@dataclass(frozen=True)
class Expressions:
    """A source of random expressions over the columns of PEOPLE; some are refused, none may fail otherwise."""

    rng: random.Random

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 2 or rng.random() < 0.3:
            return rng.choice(["i", "n", "x", "u", "n", "i", "0", "1", "2.5", "-1", "NULL"])
        a, b, c = (self.number(depth + 1) for _ in range(3))
        text, when, p, q = (
            self.text(depth + 1),
            self.date(depth + 1),
            self.condition(depth + 1),
            self.condition(depth + 1),
        )
        return rng.choice([
            f"CASE WHEN {p} THEN {a} ELSE {b} END", f"CASE WHEN {p} THEN {a} WHEN {q} THEN {b} ELSE {c} END",
            f"CASE WHEN {a} < {b} THEN {a} WHEN {c} > {b} THEN {c} ELSE {b} END", f"CASE {a} WHEN {b} THEN {c} END",
            f"CASE WHEN {a} < {b} THEN {b} - {a} ELSE {a} - {b} END", f"CASE WHEN {a} <= 1 THEN 1 ELSE 1 / {a} END",
            f"IF({p}, {a}, {b})", f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"LEAST({a}, {b})",
            f"GREATEST({a}, {b}, {c})",
            f"CLAMP({a}, -1, {rng.choice([2, 3, '2.5'])})", f"({a} + {b})", f"({a} - {b})", f"({a} * {b})",
            f"({a} / {b})", f"({a} // {b})", f"({a} % {b})", f"(-{a})", f"ABS({a})", f"SIGN({a})", f"FLOOR({a})",
            f"CEIL({a})", f"ROUND({a}, {rng.choice([0, 1, -1, 'n'])})", f"TRUNC({a})", f"SQRT({a})", f"LN({a})",
            f"EXP({a})", f"POWER({a}, {rng.choice([2, 3, -1, '0.5'])})", f"CAST({a} AS INTEGER)",
            f"CAST({a} AS DECIMAL(4, 1))", f"CAST({a} AS FLOAT)", f"CAST({text} AS INTEGER)", f"CAST({text} AS DOUBLE)",
            f"CAST({p} AS INTEGER)", f"LENGTH({text})", f"STRPOS({text}, {self.text(depth + 1)})",
            f"EXTRACT({rng.choice(['year', 'month', 'day', 'dow', 'week'])} FROM {when})",
            f"DATE_DIFF('{rng.choice(['day', 'month', 'year'])}', {when}, {self.date(depth + 1)})",
        ])  # fmt: skip

    def text(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 2 or rng.random() < 0.5:
            return rng.choice(["g", "h", "'a'", "'zz'", "''", "'12'"])
        a, b = self.text(depth + 1), self.text(depth + 1)
        return rng.choice([
            f"UPPER({a})", f"LOWER({a})", f"TRIM({a})", f"LEFT({a}, {rng.choice(['1', '2', 'n', 'i'])})",
            f"({a} || {b})", f"CONCAT({a}, {b})", f"REPLACE({a}, {b}, 'q')",
            f"LPAD({a}, {rng.choice(['3', 'i'])}, {b})", f"REVERSE({a})",
            f"SUBSTRING({a}, {rng.choice(['2', 'i'])})", f"COALESCE({a}, {b})", f"NULLIF({a}, {b})",
            f"CASE WHEN {self.condition(depth + 1)} THEN {a} ELSE {b} END", "CAST(b AS TEXT)", "CAST(i AS TEXT)",
        ])  # fmt: skip

    def date(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 2 or rng.random() < 0.5:
            return rng.choice(["d", "t", "DATE '2020-02-29'", "d"])
        a, unit = self.date(depth + 1), rng.choice(["DAY", "MONTH", "YEAR"])
        return rng.choice([
            f"({a} + INTERVAL ({rng.choice(['i', 'n', '1'])}) {unit})", f"({a} - INTERVAL (1) {unit})",
            f"DATE_TRUNC('{unit.lower()}', {a})", f"CAST({a} AS DATE)", f"LAST_DAY({a})", f"COALESCE({a}, d)",
            f"CASE WHEN {self.condition(depth + 1)} THEN {a} END",
        ])  # fmt: skip

    def condition(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 2 or rng.random() < 0.7:
            a, b, sign = self.number(depth + 1), self.number(depth + 1), rng.choice(["<", "<=", ">", ">=", "=", "<>"])
            return rng.choice([
                f"{a} {sign} {b}", f"{a} {sign} {b}", f"{a} {sign} {rng.choice(['0', '1', '2.5'])}", f"{a} IS NULL",
                f"{a} IS NOT NULL", f"{a} IN (1, 2.5, -1)", f"{a} NOT IN (0, NULL)", f"{a} BETWEEN 0 AND {b}",
                f"{a} IS DISTINCT FROM {b}", f"{self.text(depth + 1)} LIKE '{rng.choice(['a%', '%', '_', 'z_'])}'",
                f"{self.text(depth + 1)} {sign} {self.text(depth + 1)}", "b", "b IS TRUE",
                f"{self.date(depth + 1)} {sign} {self.date(depth + 1)}", "b IS NOT TRUE",
            ])  # fmt: skip
        p, q = self.condition(depth + 1), self.condition(depth + 1)
        return rng.choice([f"({p} AND {q})", f"({p} OR {q})", f"NOT ({p})", f"({p}) IS TRUE", f"NOT ({p} OR {q})"])

    def query(self) -> Asked:
        """A random query with filters, sub-queries, keys, FILTERs and shares of epsilon."""
        rng = self.rng
        outputs = [self.aggregate() for _ in range(rng.choice([1, 1, 2, 3]))]
        source = "t"
        if rng.random() < 0.4:
            source = f"(SELECT *, {self.number()} AS made FROM t WHERE {self.condition(1)})"
            outputs.append("SUM(CLAMP(made, -1, 4))")
        where = f" WHERE {self.condition()}" if rng.random() < 0.4 else ""
        by = ""
        if rng.random() < 0.6:
            keys = [rng.choice([self.text(1), self.condition(1), self.number(1), "b", "g", "n", "d"]) for _ in range(2)]
            by = " GROUP BY " + ", ".join(dict.fromkeys(keys[: rng.choice([1, 1, 2])]))
        options: dict[str, Any] = {
            "epsilon": rng.choice([1, Fraction(1, 3), 20]), "strategy": rng.choice(["auto", "split"]), **DELTA,
            "mechanism": rng.choice(["auto", "gaussian"]),
        }  # fmt: skip
        more = {
            "keys": {c: k for c, k in {"g": ["a", None], "h": ["b", "12"], "n": [4, 1]}.items() if rng.random() < 0.3}
        }
        return Asked(f"SELECT {', '.join(outputs)} FROM {source}{where}{by}", more, options)

    def aggregate(self) -> str:
        rng = self.rng
        own = f", epsilon => {rng.choice(['0.01', '0.1'])}" if rng.random() < 0.2 else ""
        chosen = f" FILTER (WHERE {self.condition(1)})" if rng.random() < 0.3 and not own else ""
        kind = rng.choice(["COUNT", "SUM", "AVG"])
        if kind == "COUNT":
            return f"COUNT({rng.choice(['*', self.number(), self.text(), self.condition(1)])}{own}){chosen}"
        number = self.number()
        return f"{kind}({rng.choice([number, f'CLAMP({number}, -2, 3)', f'CLAMP({number}, 1, 3)'])}{own}){chosen}"


# Checks: each raises AssertionError under some lie

SMALL: tuple[Any, ...] = (None, -1, 0, 1, 2)
TWO = Shape({"p": "Int64", "q": "Int64", "r": "Int64"}, {"bounds": dict.fromkeys("pqr", (-1, 2))})
CASES = (
    "CASE WHEN p < q THEN p ELSE q END", "CASE WHEN p < q THEN q - p WHEN q < r THEN r - q ELSE p - r END",
    "CASE WHEN p <= 0 THEN 0 ELSE p END", "CASE WHEN p <= 0 THEN 1 ELSE 1 / p END", "CASE WHEN p > q THEN 0 ELSE p END",
    "CASE WHEN COALESCE(q, 0) >= p THEN 0 ELSE p END", "CASE WHEN p = 1 THEN 5 WHEN p < 1 THEN p ELSE -p END",
    "CASE WHEN NULLIF(q, 1) < p THEN 3 ELSE p END", "CASE WHEN 2 > p THEN p ELSE 0 END",
    "CASE WHEN 0 < p THEN 0 ELSE p END",
    "CASE WHEN NOT p < 0 THEN p ELSE 0 END", "CASE WHEN p < 0 AND q < 0 THEN p * q ELSE p END",
    "CASE WHEN p < 0 OR q < 0 THEN 0 ELSE p END", "CASE WHEN p IS NULL THEN 0 ELSE p END",
    "CASE WHEN p IN (1, 2) THEN p ELSE 0 END", "CASE WHEN q > 0 THEN CASE WHEN q > 1 THEN p ELSE q END ELSE q END",
    "COALESCE(CASE WHEN q > 1 THEN NULL ELSE q END, 0)", "CASE WHEN p + q > 1 THEN p + q ELSE 2 - (p + q) END",
    "CASE WHEN q < 1 THEN 0 WHEN q < p THEN 1 WHEN p < 1 THEN p ELSE 2 - p END",
    "CASE WHEN (CASE WHEN q > 0 THEN q END) > p THEN p ELSE 2 * p END",
    "CASE WHEN NULLIF(q, 0) > p THEN 0 WHEN p > 1 THEN q ELSE p END", "CASE WHEN ABS(q) > p THEN -1 ELSE p END",
    "CASE WHEN q <> p THEN 0 ELSE p END", "CASE WHEN q = p THEN q ELSE p END",
)  # fmt: skip


def grid() -> list[Row]:
    """Every combination of three nullable cells."""
    return list(itertools.product(SMALL, repeat=3))


def check_facts_of_cases() -> None:
    """What is said of each CASE is true at every row, with NULL in every place, filtered or not, and the range is
    reached at both ends: what is narrowed is narrowed as far as it may be."""
    schema, frame = TWO.schema(), TWO.frame(grid())
    for case in CASES:
        for where in ("", " WHERE p > 0", " WHERE q <= p", " WHERE NOT q < 1", " WHERE p < 1 OR r > 1"):
            for least in ("", " WHERE q >= 0"):
                source = f"(SELECT * FROM t{least})" if least else "t"
                made = calibrated(schema, f"SELECT COUNT({case}), COUNT(({case}) + 1) FROM {source}{where}", B)
                checks.facts_hold(made, schema, frame)


def check_facts_of_functions() -> None:
    """The same of every function over awkward cells of every type."""
    rng = random.Random(5)
    schema, frame = PEOPLE.schema(), PEOPLE.frame(rows(rng, 80))
    for expr in SUMS:
        for where in ("", " WHERE n > 2", " WHERE NOT x > 1", " WHERE i IN (0, 3)"):
            made = calibrated(schema, f"SELECT COUNT({expr}) FROM t{where}", B)
            checks.facts_hold(made, schema, frame)


def check_rows_are_counted_alone() -> None:
    """Queries of every kind over dozens of rows, in several blocks and threads: the sum of what each row adds alone."""
    rng = random.Random(8)
    for place, asked in enumerate(every_query()):
        if place % 10 == 0:
            some = rng.choices(rows(rng, 6), k=50)
        schema = PEOPLE.schema(**asked.more)
        made = calibrated(schema, asked.sql, U, **asked.options)
        checks.rows_add_up(made, schema, PEOPLE, some)


def check_neighbours() -> None:
    """Exhaustive neighbours of a few queries whose groups are public or are chosen."""
    for asked in WHOLE:
        for relation in (U, B):
            checks.distances(PEOPLE, asked.sql, UNIVERSE[:4], relation, most=1, options=asked.options, more=asked.more)


ANSWERS_OF = pd.DataFrame({
    "k": [4, 4, 5, 5, 5, 4], "z": pd.array([1, None, 2, None, 3, 1], dtype="Int64"),
    "g": series(["a", None, None, "a", "b", "c"], "str"), "h": series(["x", "x", "y", None, "y", "q"], "str"),
})  # fmt: skip
FACTS: dict[str, Any] = {"bounds": {"k": (4, 5), "z": (1, 3)}}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "SELECT SUM(CASE WHEN z < 2 THEN 10 ELSE 1 END) FROM t": [(24,)],
    "SELECT SUM(CASE WHEN NOT z > 1 THEN 10 ELSE 1 END) FROM t": [(24,)],
    "SELECT SUM(CASE WHEN z < 2 THEN 10 WHEN z >= 2 THEN 1 ELSE 100 END) FROM t": [(222,)],
    "SELECT SUM(k) FILTER (WHERE z > 1), COUNT(*) FILTER (WHERE g = 'a'), COUNT_IF(z < 2) FROM t": [(10, 2, 2)],
    "SELECT SUM(COALESCE(z, 3)), COUNT(NULLIF(z, 1)) FROM t": [(13, 2)],
    "SELECT COUNT(*) FROM t WHERE g LIKE 'a' OR h LIKE 'q'": [(3,)],
    "SELECT COUNT(*) FROM t WHERE (g = 'a') IS NOT TRUE": [(4,)],
    "SELECT COUNT(*) FROM t WHERE UPPER(g) IS NULL": [(2,)],
    "SELECT COUNT(*) FROM t WHERE COALESCE(UPPER(g), 'none') = 'none'": [(2,)],
    "SELECT COALESCE(g, 'none'), COUNT(*) FROM t GROUP BY 1": [("a", 2), ("b", 1), ("none", 2)],
    "SELECT UPPER(g), SUM(k) FROM t GROUP BY 1": [("A", 9), ("B", 5)],
    "SELECT h, COUNT(*) FROM t GROUP BY h": [("x", 2), ("y", 2), (None, 2)],
    "SELECT g, COUNT(*) FROM t GROUP BY g": [("a", 2), ("b", 1)],
    "SELECT z, COUNT(*) FROM t GROUP BY z": [(1, 2), (2, 1), (3, 1), (None, 2)],
    "SELECT z, COUNT(*) FROM t WHERE z > 1 GROUP BY z": [(2, 1), (3, 1)],
    "SELECT z IS NULL, COUNT(*) FROM t GROUP BY 1": [(False, 4), (True, 2)],
    "SELECT CASE WHEN z > 1 THEN g ELSE h END AS v, COUNT(*) FROM t GROUP BY v": [
        ("a", 0), ("b", 1), ("x", 2), ("y", 0), (None, 2),
    ],
    "SELECT SUM(a) FROM (SELECT k + z AS a, z FROM t WHERE k > 4) WHERE z > 2": [(8,)],
    "SELECT COUNT(*) FROM (SELECT g FROM t WHERE k > 4)": [(3,)],
    "SELECT COUNT(*) FROM (SELECT z AS k, k AS z FROM t WHERE z > 1) WHERE k = 3": [(1,)],
    "SELECT MAX(c), COUNT(*) FROM (SELECT g, COUNT(*) AS c FROM t GROUP BY g)": [(2, 2)],
}  # fmt: skip
LISTS: dict[str, Any] = {"g": ["a", "b"], "h": ["x", "y", None]}


def check_language_answers() -> None:
    """At an enormous epsilon the answers are SQL's, derived by hand: outside a list (of g: 'c' and NULL, of h: 'q')
    counts as NULL where NULL is listed, and is left out where it is not."""
    prepare._cache.clear()
    for sql, expected in ANSWERS.items():
        for relation in (U, B):
            found = list(dpsql.query(ANSWERS_OF, sql, epsilon=HUGE, neighbours=relation, keys=LISTS, **FACTS))
            assert [_near(row) for row in found] == expected, f"{sql}: {found}"


def _near(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(cell) if isinstance(cell, float) else cell for cell in row)


def check_public_groups() -> None:
    """Which public groups there are is the same for every table, and rows outside them change none."""
    for key in ("b", "n", "n > 2", "FLOOR(x)", "CASE WHEN g = 'a' THEN 'x' ELSE CAST(b AS TEXT) END", "n % 2", "d"):
        sql = f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}"
        schema = PEOPLE.schema()
        made = calibrated(schema, sql, U)
        shown = [set(checks.cells_of(made, checks.run_exactly(made, schema, PEOPLE.frame(rows_)))) for rows_ in _TABLES]
        assert all(each == shown[0] for each in shown), f"groups by {key} follow the rows"
        assert len(shown[0]) == made.query.plan.public_cells


_TABLES: Sequence[Sequence[Row]] = ([], UNIVERSE[:1], UNIVERSE)


def check_shares() -> None:
    """Each share of epsilon has the noise that it pays for, and all of them are charged."""
    cases = {
        "SELECT COUNT(*, epsilon => 0.25), SUM(i, epsilon => 0.5), AVG(x) FROM t": (["1/4", "1/2", "1/4"], 1),
        "SELECT COUNT(*, epsilon => 0.25), SUM(i, epsilon => 0.5) FROM t": (["1/4", "1/2"], Fraction(3, 4)),
        "SELECT b, COUNT(*, epsilon => 0.25), SUM(i, epsilon => 0.5) FROM t GROUP BY b": (
            ["1/4", "1/2"],
            Fraction(3, 4),
        ),
        "SELECT g, COUNT(*, epsilon => 0.25), SUM(i) FROM t GROUP BY g": (["3/4", "1/4"], 1),
        "SELECT COUNT(*) FROM t": (["1"], 1),
    }
    for sql, (epsilons, cost) in cases.items():
        made = calibrated(PEOPLE.schema(), sql, U, delta=1e-6)
        assert sorted(share.epsilon for share in made.shares) == sorted(map(Fraction, epsilons)), sql
        assert made.cost.epsilon == cost == sum(share.epsilon for share in made.shares), f"{sql}: {made.cost}"
        for share in made.shares:
            scale: Any = share.noise
            assert Fraction(scale.scale) >= Fraction(share.reach.cube_sensitivity) / share.epsilon, (
                f"{sql}: too little noise"
            )
    _check_draws_of_shares()


def _check_draws_of_shares() -> None:
    """What is drawn for each of two counts is worth its own epsilon, and is not drawn from the other."""
    schema, draws = PEOPLE.schema(), 40_000
    made = calibrated(schema, "SELECT COUNT(*, epsilon => 0.25), COUNT(i > n, epsilon => 0.5) FROM t", U)
    exact = checks.run_exactly(made, schema, PEOPLE.frame(UNIVERSE[:1]))
    noise = checks.releases(made, exact, draws)[:, 0, :] - made.coordinate_steps(exact.parts)[:, 0].astype(float)
    for place, epsilon in enumerate((0.25, 0.5)):
        spent = -checks._log_ratio(noise[:, [place]])
        assert abs(spent / epsilon - 1) < 6 / draws**0.5, f"noise for {spent} beside a charge of {epsilon}"
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 6 / draws**0.5, "one noise for two shares"


FRAME = pd.DataFrame({"x": [1, 2]})


def check_options() -> None:
    """The text's OPTIONS can lower what the call, the session and the budget allow, never raise it; what nothing reads
    changes nothing; and what is charged is what the ledger is told."""

    def text(options: str, rest: str = "COUNT(*) FROM t") -> str:
        return f"{TEXT} ({options}) {rest}"

    def charge(sql: str, **terms: Any) -> Fraction | str:
        held = dpsql.Session({"t": FRAME}, budget=dpsql.Budget(3, 1e-5), max_epsilon=2, epsilon=0.5)
        try:
            result = held.query(sql, **terms)
        except DPSQLError as error:
            assert held.spent.epsilon == 0, f"{sql}: refused, and charged"
            return type(error).__name__
        spent = held.spent
        loss = getattr(result, "loss", spent)
        assert (spent.epsilon, spent.delta) == (loss.epsilon, loss.delta)
        return spent.epsilon

    refused = InvalidPrivacyParameter.__name__
    unread = f"WITH u AS ({text('epsilon = 2')})"
    cases: list[tuple[Fraction | str, str, dict[str, Any]]] = [
        (Fraction(1, 4), text("epsilon = 0.25"), {"epsilon": 1}),
        (refused, text("epsilon = 1.5"), {"epsilon": 1}),
        (refused, text("epsilon = 2.5"), {}),
        (Fraction(2), text("epsilon = 2"), {}),
        (refused, text("epsilon = 1e400"), {}),
        (refused, text("delta = 1e-6", "x, COUNT(*) FROM t GROUP BY x"), {"delta": 1e-7}),
        (refused, "SELECT COUNT(*, epsilon => 1.5) FROM t", {"epsilon": 1}),
        (refused, "SELECT COUNT(*, epsilon => 0.5), SUM(x > 1, epsilon => 0.6) FROM t", {"epsilon": 1}),
        (Fraction(1), f"{unread} SELECT COUNT(*) FROM t", {"epsilon": 1}),
        (Fraction(1, 2), f"{unread} SELECT COUNT(*) FROM t", {}),
        (Fraction(0), f"EXPLAIN PRIVACY {text('epsilon = 2')}", {}),
        (refused, f"EXPLAIN PRIVACY {text('epsilon = 2')}", {"epsilon": 1}),
        (Fraction(1, 4), f"SELECT MAX(n) FROM ({text('epsilon = 0.25', 'COUNT(*) AS n FROM t')})", {"epsilon": 1}),
        (refused, f"SELECT MAX(n) FROM ({text('epsilon = 2', 'COUNT(*) AS n FROM t')})", {"epsilon": 1}),
        (refused, f"WITH u AS ({text('epsilon = 2', 'COUNT(*) AS n FROM t')}) SELECT n FROM u", {"epsilon": 1}),
    ]
    prepare._cache.clear()
    for expected, sql, terms in cases:
        for _ in range(2):  # planned, and out of the cache
            assert charge(sql, **terms) == expected, f"{sql}, {terms}: {charge(sql, **terms)}, not {expected}"


def check_parameters_are_not_confused() -> None:
    """One text with other parameters is another plan, though 1 == 1.0 == True in Python."""
    prepare._cache.clear()
    sql = "SELECT SUM(CLAMP(k, 0, :most)) FROM t"
    for most in (1, 2, 3, 1):
        assert round(dpsql.query(ANSWERS_OF, sql, epsilon=HUGE, params={"most": most}).item()) == 6 * most
    sql = "SELECT CAST(:p AS TEXT) AS p, COUNT(*) FROM t"
    for value, expected in ((1, "1"), (1.0, "1.0"), (True, "true"), ("1", "1"), (1, "1"), (None, None)):
        found = dpsql.query(ANSWERS_OF, sql, epsilon=1, params={"p": value})
        assert [row[0] for row in found] == [expected], f"{value!r}: {found}"
    for name in ("one", "two"):
        found = dpsql.query(ANSWERS_OF, sql.replace(":p", f":{name}"), epsilon=1, params={name: name})
        assert [row[0] for row in found] == [name]


def check_nothing_but_numbers_leaves(cells: Sequence[Any] = (1, 2)) -> None:
    """A stage over an answer reads the answer alone."""
    frame = pd.DataFrame({"x": np.array(cells)})
    for sql in ("SELECT x FROM (SELECT COUNT(*) AS n FROM t)", "SELECT SUM(t.x) FROM (SELECT COUNT(*) AS n FROM t)"):
        try:
            dpsql.query(frame, sql, epsilon=1)
        except DPSQLError:
            continue
        raise AssertionError(f"answered: {sql}")
