"""Random queries over tests.language.people, each in two spellings: dpsql's, and one that DuckDB answers alike.

The spellings differ where the languages do on purpose: DuckDB's divisors get NULLIF(..., 0), its // of floats TRUNC,
its numbers a cast to DOUBLE (they would be decimals), CLAMP is spelt out, and its groups come from a list.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.language.people import BOUNDS, KEYS


@dataclass(frozen=True)
class Text:
    """An expression: its two spellings, and for numbers whether it is whole."""

    ours: str
    theirs: str
    whole: bool = False


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a query: COUNT, SUM or AVG, and how DuckDB counts the rows that enter it."""

    kind: str
    ours: str
    theirs: str
    entering: str


@dataclass(frozen=True)
class RandomQuery:
    """A query in dpsql's words, its keys, and DuckDB's spelling: the keys, then each aggregate, then its count."""

    ours: str
    theirs: str
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    unknown: bool
    having: float | None
    """Groups with a COUNT(*) above this are kept; None: all. Never a whole number, so that no noise decides."""


PUBLIC: dict[str, list[Any]] = {
    "s": KEYS["s"],
    "c": KEYS["c"],
    "b": [False, True],
    "nb": [False, True, None],
    "j": [*range(int(BOUNDS["j"][0]), int(BOUNDS["j"][1]) + 1)],
    "n": [*range(int(BOUNDS["n"][0]), int(BOUNDS["n"][1]) + 1), None],
}
UNKNOWN = ("o", "u")
_TYPES = {"s": "VARCHAR", "c": "VARCHAR", "b": "BOOLEAN", "nb": "BOOLEAN", "j": "BIGINT", "n": "BIGINT"}


class Grammar:
    """Draws expressions and queries from a seeded generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def query(self) -> RandomQuery:
        where = self.condition(3) if self.rng.random() < 0.7 else None
        keys = self._keys()
        unknown = any(key in UNKNOWN for key in keys)
        aggregates = [self._aggregate() for _ in range(self.rng.randint(1, 3))]
        having = self.rng.randint(0, 6) + 0.5 if keys and self.rng.random() < 0.3 else None
        ours = f"SELECT {', '.join([*keys, *(each.ours for each in aggregates)])} FROM t"
        ours += f" WHERE {where.ours}" if where else ""
        ours += f" GROUP BY {', '.join(keys)}" if keys else ""
        ours += f" HAVING COUNT(*) > {having}" if having else ""
        theirs = self._theirs(where, keys, aggregates, unknown)
        return RandomQuery(ours, theirs, keys, tuple(aggregates), unknown, having)

    def _keys(self) -> tuple[str, ...]:
        draw = self.rng.random()
        if draw < 0.35:
            return ()
        pool = [*PUBLIC, *(UNKNOWN if draw > 0.8 else ())]
        keys = self.rng.sample(pool, self.rng.choice([1, 1, 2]))
        return tuple(keys)

    def _theirs(self, where: Text | None, keys: Sequence[str], aggregates: Sequence[Aggregate], unknown: bool) -> str:
        """Keys, aggregates, COUNT(*) and each aggregate's count; every declared group has a row, an empty one too."""
        passing = f"(SELECT * FROM t{f' WHERE {where.theirs}' if where else ''})"
        wanted = [*(each.theirs for each in aggregates), "COUNT(m)", *(each.entering for each in aggregates)]
        if not keys:
            return f"SELECT {', '.join(wanted)} FROM {passing}"
        by_value = [_as_key(key) for key in keys]
        shown = ", ".join([*by_value, *wanted])
        listed = [key for key in keys if key in PUBLIC and None not in PUBLIC[key]]
        if unknown:
            inside = " AND ".join(_inside(key) for key in listed) or "TRUE"
            return f"SELECT {shown} FROM {passing} WHERE {inside} GROUP BY {', '.join(by_value)}"
        tables = " CROSS JOIN ".join(_values(key) for key in keys)
        meets = " AND ".join(f"{_as_key(key)} IS NOT DISTINCT FROM k_{key}" for key in keys)
        shown = ", ".join([*(f"k_{key}" for key in keys), *wanted])
        by = ", ".join(f"k_{key}" for key in keys)
        return f"SELECT {shown} FROM {tables} LEFT JOIN {passing} ON {meets} GROUP BY {by}"

    def _aggregate(self) -> Aggregate:
        draw = self.rng.random()
        if draw < 0.2:
            return Aggregate("COUNT", "COUNT(*)", "COUNT(m)", "COUNT(m)")
        if draw < 0.4:
            expr = self.rng.choice([self.number, self.condition, self.text])(2)
            marked = f"CASE WHEN m = 1 THEN {expr.theirs} END"
            return Aggregate("COUNT", f"COUNT({expr.ours})", f"COUNT({marked})", f"COUNT({marked})")
        kind = self.rng.choice(["SUM", "AVG"])
        if draw < 0.5:
            condition = self.condition(2)
            theirs = f"CAST({condition.theirs} AS INTEGER)"
            ours = condition.ours
        else:
            number = self.number(3)
            ours, theirs = number.ours, number.theirs
            if self.rng.random() < 0.5:
                ours, theirs = _clamp(ours, theirs, -50, 75)
        theirs = f"CASE WHEN m = 1 THEN {theirs} END"
        return Aggregate(kind, f"{kind}({ours})", f"{kind}({theirs})", f"COUNT({theirs})")

    def number(self, depth: int) -> Text:
        if depth == 0 or self.rng.random() < 0.2:
            return self._leaf()
        choices = (self._arithmetic, self._division, self._rounding, self._choice, self._conditional)
        return self.rng.choice(choices)(depth - 1)

    def _leaf(self) -> Text:
        draw = self.rng.random()
        if draw < 0.7:
            name = self.rng.choice("ijrnjrn" + ("u" if draw < 0.1 else "i"))
            return Text(name, name, name in "ijn")
        if draw < 0.9:
            value = self.rng.randint(-4, 9)
            return Text(f"({value})", f"({value})", whole=True)
        value = self.rng.choice([0.5, 2.25, -1.75, 3.0])
        return Text(f"({value})", f"CAST({value} AS DOUBLE)")

    def _arithmetic(self, depth: int) -> Text:
        a, b = self.number(depth), self.number(depth)
        sign = self.rng.choice("+-*")
        return Text(f"({a.ours} {sign} {b.ours})", f"({a.theirs} {sign} {b.theirs})", a.whole and b.whole)

    def _division(self, depth: int) -> Text:
        a, b = self.number(depth), self.number(depth)
        whole = a.whole and b.whole
        divisor = f"NULLIF({b.theirs}, 0)"
        sign = self.rng.choice(["/", "//", "%"])
        if sign == "/":
            return Text(f"({a.ours} / {b.ours})", f"(CAST({a.theirs} AS DOUBLE) / {divisor})")
        if sign == "//" and not whole:
            return Text(f"({a.ours} // {b.ours})", f"TRUNC(CAST({a.theirs} AS DOUBLE) / {divisor})")
        return Text(f"({a.ours} {sign} {b.ours})", f"({a.theirs} {sign} {divisor})", whole)

    def _rounding(self, depth: int) -> Text:
        a = self.number(depth)
        name = self.rng.choice(["ABS", "FLOOR", "CEIL", "ROUND", "ROUND2", "-"])
        if name == "-":
            return Text(f"(- {a.ours})", f"(- {a.theirs})", a.whole)
        if name == "ROUND2":
            digits = self.rng.choice([-1, 0, 1])
            return Text(f"ROUND({a.ours}, {digits})", f"ROUND({a.theirs}, {digits})", a.whole)
        theirs = f"{name}({a.theirs})"  # of a BIGINT too it is a DOUBLE, for which // is another function
        return Text(f"{name}({a.ours})", f"CAST({theirs} AS BIGINT)" if a.whole else theirs, a.whole)

    def _choice(self, depth: int) -> Text:
        a, b = self.number(depth), self.number(depth)
        name = self.rng.choice(["LEAST", "GREATEST", "COALESCE", "NULLIF", "CLAMP"])
        if name == "CLAMP":
            low = self.rng.randint(-6, 3)
            ours, theirs = _clamp(a.ours, a.theirs, low, low + self.rng.randint(1, 30))
            return Text(ours, theirs, a.whole)
        third = [self.number(0)] if name in ("LEAST", "GREATEST", "COALESCE") and self.rng.random() < 0.3 else []
        args = [a, b, *third]
        whole = all(each.whole for each in args)
        return Text(
            f"{name}({', '.join(each.ours for each in args)})",
            f"{name}({', '.join(each.theirs for each in args)})",
            whole,
        )

    def _conditional(self, depth: int) -> Text:
        return self._choice(depth)

    def condition(self, depth: int) -> Text:
        if depth == 0:
            return self._truth()
        pick = self.rng.choice(
            ["and", "or", "not", "compare", "compare", "in", "between", "null", "is", "text", "leaf"]
        )
        if pick in ("and", "or"):
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return Text(f"({a.ours} {pick.upper()} {b.ours})", f"({a.theirs} {pick.upper()} {b.theirs})")
        if pick == "not":
            a = self.condition(depth - 1)
            return Text(f"(NOT {a.ours})", f"(NOT {a.theirs})")
        if pick == "compare":
            return self._comparison(self.number(depth - 1), self.number(depth - 1))
        if pick == "in":
            return self._membership(depth)
        if pick == "between":
            a, b, c = (self.number(depth - 1) for _ in range(3))
            word = self.rng.choice(["BETWEEN", "NOT BETWEEN"])
            return Text(f"({a.ours} {word} {b.ours} AND {c.ours})", f"({a.theirs} {word} {b.theirs} AND {c.theirs})")
        if pick == "null":
            a = self.rng.choice([self.number, self.condition, self.text])(depth - 1)
            word = self.rng.choice(["IS NULL", "IS NOT NULL"])
            return Text(f"({a.ours} {word})", f"({a.theirs} {word})")
        if pick == "is":
            a = self.condition(depth - 1)
            word = self.rng.choice(["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"])
            return Text(f"({a.ours} {word})", f"({a.theirs} {word})")
        if pick == "text":
            return self._comparison(self.text(depth - 1), self.text(depth - 1))
        return self._truth()

    def _truth(self) -> Text:
        name = self.rng.choice(["b", "nb", "b", "nb", "TRUE", "FALSE", "(i > 3)", "(r < 1)"])
        return Text(name, name)

    def _comparison(self, a: Text, b: Text) -> Text:
        sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return Text(f"({a.ours} {sign} {b.ours})", f"({a.theirs} {sign} {b.theirs})")

    def _membership(self, depth: int) -> Text:
        word = self.rng.choice(["IN", "NOT IN"])
        if self.rng.random() < 0.4:
            needle = self.text(depth - 1)
            listed = [Text(each, each) for each in self.rng.sample(["'a'", "'b'", "'x'", "''", "'red'", "NULL"], 3)]
        else:
            needle = self.number(depth - 1)
            listed = [self.number(0) for _ in range(self.rng.randint(1, 4))]
            if self.rng.random() < 0.7:
                listed = [each for each in listed if each.ours[0] == "("]
                listed += [Text("7", "7", whole=True), *([Text("NULL", "NULL")] if self.rng.random() < 0.3 else [])]
        return Text(
            f"({needle.ours} {word} ({', '.join(each.ours for each in listed)}))",
            f"({needle.theirs} {word} ({', '.join(each.theirs for each in listed)}))",
        )

    def text(self, depth: int) -> Text:
        if depth <= 0 or self.rng.random() < 0.6:
            draw = self.rng.choice(["s", "c", "o", "s", "c", "'a'", "'b'", "'red'", "'x'", "''", "'it''s'"])
            return Text(draw, draw)
        a, b = self.text(depth - 1), self.text(depth - 1)
        name = self.rng.choice(["COALESCE", "NULLIF"])
        return Text(f"{name}({a.ours}, {b.ours})", f"{name}({a.theirs}, {b.theirs})")


def _clamp(ours: str, theirs: str, low: int, high: int) -> tuple[str, str]:
    spelt = f"(CASE WHEN {theirs} IS NOT NULL THEN LEAST(GREATEST({theirs}, {low}), {high}) END)"
    return f"CLAMP({ours}, {low}, {high})", spelt


def _sql(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value + "'" if isinstance(value, str) else str(value).upper()


def _values(key: str) -> str:
    rows = ", ".join(f"(CAST({_sql(value)} AS {_TYPES[key]}))" for value in PUBLIC[key])
    return f"(VALUES {rows}) AS list_{key}(k_{key})"


def _as_key(key: str) -> str:
    """The one declared list with NULL in it takes values outside it for NULL."""
    return f"CASE WHEN {_inside(key)} THEN {key} END" if key == "s" else key


def _inside(key: str) -> str:
    listed = PUBLIC[key]
    present = ", ".join(_sql(value) for value in listed if value is not None)
    return f"({key} IN ({present}){f' OR {key} IS NULL' if None in listed else ''})"
