"""Random accepted queries over one table with every awkward kind of column, and random rows for it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.core.checks import INF, NAN, Row, Shape

SHAPE = Shape(
    {
        "i": "int64", "p": "int64", "f": "float64", "u": "float64", "n": "Int64", "g": "str", "h": "str",
        "b": "boolean", "d": "bool", "o": "str",
    },
    {"bounds": {"i": (-2, 5), "p": (20, 30), "f": (-1, 2), "n": (0, 2), "o": (0, 4)}, "types": {"o": "integer"}},
)  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "i": [-2, 0, 3, 5, 9, -7],
    "p": [20, 21, 25, 30, 31, 2**40],
    "f": [NAN, INF, -INF, -1.5, 0.25, 2.0, 1e300, -0.0],
    "u": [NAN, INF, -INF, 1e308, -3.5, 2.0, 0.0, 0.5],
    "n": [None, 0, 1, 2, 7],
    "g": ["a", "b", "zz", None, 5, "", [1], "a\0b"],
    "h": ["a", "b", "c", None],
    "b": [True, False, None],
    "d": [True, False],
    "o": [None, "3", "x", 2, 2.5, [1], 4.0, 99, "2", NAN, True],
}
OTHER_BOUNDS = {"i": [(-5, -2), (-3, 0), (1, 2), (-7, 9)], "f": [(0.5, 0.75), (-3.5, -0.5), (0, 1e-3)]}
KEYS: dict[str, list[list[Any]]] = {
    "g": [["a", "b"], ["a"], ["a", None], ["q"]],
    "h": [["a", "b"], [None, "c"]],
    "b": [[True], [False, None]],
    "i": [[0, 3], [5]],
    "f": [[-1, 2.0, 0.25]],
    "u": [[0, 0.5], [2.0]],
}
GROUPED = [["g"], ["h"], ["b"], ["n"], ["d"], ["i"], ["f"], ["u"], ["o"], ["g", "b"], ["g", "h", "n"], ["u", "i"]]
COMPARISONS = ["<", "<=", ">", ">=", "=", "<>"]


def rows(rng: random.Random, count: int) -> list[Row]:
    """Different rows (up to how they print)."""
    found = [tuple(rng.choice(VALUES[name]) for name in SHAPE.dtypes) for _ in range(count)]
    return list({repr(row): row for row in found}.values())


@dataclass(frozen=True)
class Asked:
    """A query, what is declared for it, and how it is to be answered."""

    sql: str
    more: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class Queries:
    """A source of random queries; some are refused, for want of bounds or keys, and none may fail otherwise."""

    rng: random.Random

    def query(self) -> Asked:
        rng = self.rng
        outputs = ", ".join(self.aggregate() for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])))
        where = f" WHERE {self.condition()}" if rng.random() < 0.5 else ""
        keys = rng.choice(GROUPED) if rng.random() < 0.7 else []
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        options: dict[str, Any] = {
            "epsilon": rng.choice([1, 0.1, Fraction(1, 3), 1000, 1e-6]),
            "strategy": rng.choice(["auto", "auto", "split"]),
        }
        if rng.random() < 0.6:
            options |= {"delta": 1e-6, "mechanism": rng.choice(["auto", "auto", "gaussian"])}
        return Asked(f"SELECT {outputs} FROM t{where}{by}", self.declared(), options)

    def declared(self) -> dict[str, Any]:
        rng = self.rng
        more: dict[str, Any] = {"keys": {c: rng.choice(lists) for c, lists in KEYS.items() if rng.random() < 0.3}}
        if rng.random() < 0.4:
            more["nullable"] = dict.fromkeys(rng.sample(["f", "n", "g", "o", "h", "b", "u"], rng.randint(1, 3)), False)
        if rng.random() < 0.2 and not {"i", "f"} & set(more["keys"]):
            more["bounds"] = {**SHAPE.declared["bounds"], **{c: rng.choice(b) for c, b in OTHER_BOUNDS.items()}}
        if rng.random() < 0.1:
            more["types"] = {"o": rng.choice(["real", "integer"]), "f": rng.choice(["integer", "real"])}
            more["keys"].pop("f", None)
        return more

    def aggregate(self) -> str:
        rng = self.rng
        kind = rng.choice(["COUNT", "SUM", "SUM", "AVG", "AVG"])
        if kind == "COUNT":
            return f"COUNT({rng.choice(['*', '*', self.number(), 'g', 'b', 'h', self.condition(2)])})"
        return f"{kind}({rng.choice([self.number(), self.number(), 'i', 'p', 'f', 'n', 'o', 'b', 'd'])})"

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        if rng.random() < 0.5 or depth > 2:
            plain = ["i", "p", "f", "n", "o"]
            return rng.choice([*plain, *plain, "2", "-1", "0.5", "3", "u", "1.9"])
        a, b = self.number(depth + 1), self.number(depth + 1)
        low, high = rng.choice([0, -1, 1]), rng.choice([2, 3, "2.5"])
        forms = [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} // {b})", f"({a} % {b})",
            f"ABS({a})", f"(-{a})", f"FLOOR({a})", f"CEIL({a})", f"LEAST({a}, {b})", f"GREATEST({a}, {b})",
            f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"CLAMP({a}, {low}, {high})", f"ROUND({a})",
            f"ROUND({a}, {rng.choice([0, 1, -1])})",
        ]  # fmt: skip
        return rng.choice(forms)

    def condition(self, depth: int = 0) -> str:
        rng = self.rng
        if rng.random() < 0.55 or depth > 2:
            a, b = self.number(1), self.number(1)
            low, high = rng.choice([-1, 0, 1, "1.5"]), rng.choice([2, 3, 25, "2.5"])
            listed = rng.choice(["2, 5", "0", "25, 30", "1.9, 3", "1.5, 4"])
            return rng.choice([
                f"{a} {rng.choice(COMPARISONS)} {b}", f"{a} IN ({listed})", f"{a} NOT IN (1, 3)", f"{a} IS NULL",
                f"{a} IS NOT NULL", f"{a} BETWEEN {low} AND {high}", f"u {rng.choice(COMPARISONS)} {b}",
                f"g = '{rng.choice('ab')}'", "g IN ('a', NULL)", "h <> 'a'", "g < 'b'", "h IS NOT NULL", "b", "NOT b",
                "d", "b IS TRUE", "d = b", "NULL", "TRUE",
            ])  # fmt: skip
        c = self.condition(depth + 1)
        forms = [f"({c} AND {self.condition(depth + 1)})", f"({c} OR {self.condition(depth + 1)})", f"(NOT {c})"]
        return rng.choice([*forms, f"({c}) IS TRUE", f"({c}) IS FALSE"])
