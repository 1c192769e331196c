"""Random queries over tests.sql.people, each in two spellings: dpsql's, and one that DuckDB answers alike.

The spellings differ where the languages do on purpose: DuckDB's divisors get NULLIF(..., 0), its // of floats TRUNC,
its numbers a cast to DOUBLE (they would be decimals), CLAMP is spelt out, a cast is a TRY_CAST, and its groups come
from a list. No text cares whether `d` and `e` are dates or timestamps at midnight.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.sql.people import BOUNDS, KEYS


@dataclass(frozen=True)
class Text:
    """An expression: its two spellings, and for numbers whether it is whole."""

    ours: str
    theirs: str
    whole: bool = False


@dataclass(frozen=True)
class Key:
    """A GROUP BY term: its spellings, all values that it can have where these are public, and DuckDB's type of them.

    With `else_null` a value that is not listed counts as NULL."""

    ours: str
    theirs: str
    values: Sequence[Any] | None
    type: str
    else_null: bool = False


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
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    unknown: bool
    having: float | None
    """Groups with a COUNT(*) above this are kept; None: all. Never a whole number, so that no noise decides."""


@dataclass(frozen=True)
class StagedQuery:
    """A query over an answer of keys and counts, in both spellings; rows come in any order."""

    ours: str
    theirs: str


PUBLIC: dict[str, list[Any]] = {
    "s": KEYS["s"],
    "c": KEYS["c"],
    "b": [False, True],
    "nb": [False, True, None],
    "j": [*range(int(BOUNDS["j"][0]), int(BOUNDS["j"][1]) + 1)],
    "n": [*range(int(BOUNDS["n"][0]), int(BOUNDS["n"][1]) + 1), None],
}
_TYPES = {"s": "VARCHAR", "c": "VARCHAR", "b": "BOOLEAN", "nb": "BOOLEAN", "j": "BIGINT", "n": "BIGINT"}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BOOLEANS = (False, True, None)
LISTED = [Key(name, name, values, _TYPES[name], name == "s") for name, values in PUBLIC.items()]
"""Columns whose values are declared or follow from their type and bounds."""
DERIVED = [
    Key("FLOOR(i / 10)", "FLOOR(i / 10)", range(-1, 3), "DOUBLE"),
    Key("i % 3", "i % 3", range(-2, 3), "BIGINT"),
    Key("SIGN(i)", "SIGN(i)", (-1, 0, 1), "BIGINT"),
    Key("LEAST(j, 2)", "LEAST(j, 2)", range(3), "BIGINT"),
    Key("CAST(j AS VARCHAR)", "CAST(j AS VARCHAR)", [str(each) for each in range(6)], "VARCHAR"),
    Key("UPPER(s)", "UPPER(s)", ("A", "B", "ZZ", None), "VARCHAR"),
    Key("LENGTH(s)", "LENGTH(s)", (1, 2, None), "BIGINT"),
    Key("COALESCE(c, 'none')", "COALESCE(c, 'none')", ("red", "blue", "none of these", "none"), "VARCHAR"),
    Key("EXTRACT(month FROM d)", "EXTRACT(month FROM d)", (1, 2, 3, None), "BIGINT"),
    Key("EXTRACT(dow FROM w)", "EXTRACT(dow FROM w)", (*range(7), None), "BIGINT"),
    Key("DAYNAME(e)", "DAYNAME(e)", (*_DAYS, None), "VARCHAR"),
    Key("x LIKE '%a%'", "x LIKE '%a%'", _BOOLEANS, "BOOLEAN"),
]
UNKNOWN = [
    *(Key(name, name, None, "VARCHAR") for name in "oxue"),
    Key("UPPER(x)", "UPPER(x)", None, "VARCHAR"),
    Key("LEFT(o, 1)", "LEFT(o, 1)", None, "VARCHAR"),
    Key("ROUND(u / 20)", "ROUND(u / 20)", None, "DOUBLE"),
]
_PATTERNS = [
    "'a%'",
    "'%b'",
    "'%b%'",
    "'_b_'",
    "'%'",
    "''",
    "'___'",
    "'A%'",
    "'1%2'",
    "'%\\%%' ESCAPE '\\'",
    "NULL",
    "x",
]
_WORDS = ["'a'", "'b'", "'red'", "'x'", "''", "'it''s'", "'12'", "'-3.5'", "'Ab'"]
_DAYS = ["DATE '2020-02-01'", "DATE '2020-02-15'", "DATE '2000-02-29'", "TIMESTAMP '2020-01-20 12:00:00'"]
_PARTS = ["year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second"]


class Grammar:
    """Draws expressions and queries from a seeded generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = "ijrnjrni"
        self.booleans = ("b", "nb")
        self.texts = "scoxsxco"
        self.made: list[Text] = []
        """Numbers that a sub-query has computed."""
        self.named: list[Text] = []
        """Texts that it has."""

    def query(self) -> RandomQuery:
        table = self._table()
        where = self.condition(3) if self.rng.random() < 0.7 else None
        keys = self._keys()
        unknown = any(key.values is None for key in keys)
        aggregates = [self._aggregate() for _ in range(self.rng.randint(1, 3))]
        having = self.rng.randint(0, 6) + 0.5 if keys and self.rng.random() < 0.3 else None
        named = [(f"k{place}", key) for place, key in enumerate(keys)]
        shown = [key.ours if key.ours.isidentifier() else f"{key.ours} AS {name}" for name, key in named]
        ours = f"SELECT {', '.join([*shown, *(each.ours for each in aggregates)])} FROM {table.ours}"
        ours += f" WHERE {where.ours}" if where else ""
        ours += f" GROUP BY {', '.join(self._by(place, name, key) for place, (name, key) in enumerate(named))}" * bool(
            keys
        )
        ours += f" HAVING COUNT(*) > {having}" if having else ""
        ours = self._common(ours)
        theirs = self._theirs(table.theirs, where, keys, aggregates, unknown)
        return RandomQuery(ours, theirs, keys, tuple(aggregates), unknown, having)

    def _table(self) -> Text:
        """The table, or a sub-query that keeps its columns, has more, and leaves some rows out."""
        if self.rng.random() < 0.6:
            return Text("t", "t")
        inside = self._table() if self.rng.random() < 0.2 else Text("t", "t")
        depth = len(self.made)
        number, text = self.number(2), self.text(2)
        where = self.condition(2) if self.rng.random() < 0.5 else Text("TRUE", "TRUE")
        named = f"y{depth}", f"z{depth}"
        self.made.append(Text(named[0], named[0], number.whole))
        self.named.append(Text(named[1], named[1]))
        form = f"(SELECT *, {{}} AS {named[0]}, {{}} AS {named[1]} FROM {{}} WHERE {{}}) AS q"
        parts = (number, text, inside, where)
        return Text(form.format(*(each.ours for each in parts)), form.format(*(each.theirs for each in parts)))

    def _common(self, ours: str) -> str:
        """Sometimes the sub-query as a CTE."""
        start, end = ours.find("(SELECT *,"), ours.rfind(") AS q")
        if start < 0 or self.rng.random() < 0.5:
            return ours
        return f"WITH q AS {ours[start : end + 1]} {ours[:start]}q{ours[end + 6 :]}"

    def _by(self, place: int, name: str, key: Key) -> str:
        return self.rng.choice([key.ours, key.ours if key.ours.isidentifier() else name, str(place + 1)])

    def _keys(self) -> tuple[Key, ...]:
        draw = self.rng.random()
        if draw < 0.35:
            return ()
        texts, named = self.texts, self.named
        self.texts, self.named = "ox", []  # of columns with lists only what the lists lead to is a key
        drawn = [self._condition_key(), self._case_key()]
        pool = [*LISTED, *DERIVED, *drawn, *(UNKNOWN if draw > 0.8 else ())]
        self.texts, self.named = texts, named
        return tuple(self.rng.sample(pool, self.rng.choice([1, 1, 2])))

    def _condition_key(self) -> Key:
        """With a column in it, for a constant is no key."""
        condition = self.condition(2)
        return Key(f"({condition.ours} OR nb)", f"({condition.theirs} OR nb)", _BOOLEANS, "BOOLEAN")

    def _case_key(self) -> Key:
        first = self.condition(1)
        tests = [Text(f"({first.ours} AND b)", f"({first.theirs} AND b)"), self.condition(2)]
        words = [*("pqr"[:2]), *(["r"] if self.rng.random() < 0.5 else [])]
        otherwise = " ELSE 'r'" if "r" in words else ""
        ours, theirs = (
            f"CASE WHEN {first} THEN 'p' WHEN {second} THEN 'q'{otherwise} END"
            for first, second in ([each.ours for each in tests], [each.theirs for each in tests])
        )
        return Key(ours, theirs, (*words, None), "VARCHAR")

    def _theirs(
        self, table: str, where: Text | None, keys: Sequence[Key], aggregates: Sequence[Aggregate], unknown: bool
    ) -> str:
        """Keys, aggregates, COUNT(*) and each aggregate's count; every declared group has a row, an empty one too."""
        by_value = [_as_key(key) for key in keys]
        named = "".join(f", {text} AS k{place}" for place, text in enumerate(by_value))
        passing = f"(SELECT *{named} FROM {table}{f' WHERE {where.theirs}' if where else ''}) AS passing"
        wanted = [*(each.theirs for each in aggregates), "COUNT(m)", *(each.entering for each in aggregates)]
        if not keys:
            return f"SELECT {', '.join(wanted)} FROM {passing}"
        places = range(len(keys))
        if unknown:
            inside = " AND ".join(_inside(f"k{place}", key) for place, key in enumerate(keys)) or "TRUE"
            by = ", ".join(f"k{place}" for place in places)
            return f"SELECT {', '.join([by, *wanted])} FROM {passing} WHERE {inside} GROUP BY {by}"
        tables = " CROSS JOIN ".join(_values(place, key) for place, key in enumerate(keys))
        meets = " AND ".join(f"k{place} IS NOT DISTINCT FROM listed{place}" for place in places)
        by = ", ".join(f"listed{place}" for place in places)
        return f"SELECT {', '.join([by, *wanted])} FROM {tables} LEFT JOIN {passing} ON {meets} GROUP BY {by}"

    def _aggregate(self) -> Aggregate:
        draw = self.rng.random()
        chosen = self.condition(1) if self.rng.random() < 0.25 else None
        passes = "m = 1" if chosen is None else f"m = 1 AND {chosen.theirs}"
        filtered = "" if chosen is None else f" FILTER (WHERE {chosen.ours})"
        if draw < 0.2:
            marked = f"CASE WHEN {passes} THEN 1 END"
            return Aggregate("COUNT", f"COUNT(*){filtered}", f"COUNT({marked})", f"COUNT({marked})")
        if draw < 0.25:
            test = self.condition(2)
            marked = f"CASE WHEN {passes} AND {test.theirs} THEN 1 END"
            return Aggregate("COUNT", f"COUNT_IF({test.ours}){filtered}", f"COUNT({marked})", f"COUNT({marked})")
        if draw < 0.4:
            expr = self.rng.choice([self.number, self.condition, self.text])(2)
            marked = f"CASE WHEN {passes} THEN {expr.theirs} END"
            return Aggregate("COUNT", f"COUNT({expr.ours}){filtered}", f"COUNT({marked})", f"COUNT({marked})")
        kind = self.rng.choice(["SUM", "AVG"])
        if draw < 0.5:
            condition = self.condition(2)
            theirs = f"CAST({condition.theirs} AS INTEGER)"
            ours = condition.ours
        else:
            number = self.number(3)
            ours, theirs = number.ours, number.theirs
            if self.rng.random() < 0.6:
                ours, theirs = _clamp(ours, theirs, -50, 75)
        theirs = f"CASE WHEN {passes} THEN {theirs} END"
        return Aggregate(kind, f"{kind}({ours}){filtered}", f"{kind}({theirs})", f"COUNT({theirs})")

    def staged(self) -> StagedQuery:
        """A SELECT over counts by group."""
        keys = self.rng.sample(["i", "j", "b", "nb"], self.rng.choice([1, 2]))
        where = self.condition(2) if self.rng.random() < 0.5 else Text("TRUE", "TRUE")
        by = ", ".join(keys)
        inner = f"SELECT {by}, COUNT(*) AS y FROM t WHERE {{}} GROUP BY {by} HAVING COUNT(*) > 0.5"
        self.numbers = "".join(key for key in keys if key in "ij") + "yy"
        self.booleans = tuple(key for key in keys if key in ("b", "nb")) or ("(y > 2)",)
        self.made, self.named = [], [Text("'a'", "'a'"), Text("CAST(y AS VARCHAR)", "CAST(y AS VARCHAR)")]
        above = self.condition(2) if self.rng.random() < 0.5 else Text("TRUE", "TRUE")
        key = self.rng.choice([None, self._chosen(self.condition), self._chosen(self.text), Text(keys[0], keys[0])])
        outputs = [self._over_rows() for _ in range(self.rng.randint(1, 3))]
        texts = []
        for place in (0, 1):
            spelt = [(each.ours, each.theirs)[place] for each in outputs]
            below, test = ((each.ours, each.theirs)[place] for each in (where, above))
            shown = "" if key is None else f"{(key.ours, key.theirs)[place]} AS k, "
            source = f"({inner.format(below)}) AS q WHERE {test}"
            texts.append(f"SELECT {shown}{', '.join(spelt)} FROM {source}{' GROUP BY k' if shown else ''}")
        return StagedQuery(*texts)

    def _chosen(self, draw: Callable[[int], Text]) -> Text:
        a, b = draw(1), draw(2)
        form = "(CASE WHEN y > 3 THEN {} ELSE {} END)"
        return Text(form.format(a.ours, b.ours), form.format(a.theirs, b.theirs))

    def _over_rows(self) -> Text:
        name = self.rng.choice(["SUM", "AVG", "MIN", "MAX", "COUNT", "COUNT_IF", "MIN", "MAX"])
        if name == "COUNT_IF":  # of no rows, or of NULLs alone, it is NULL in DuckDB
            each = self.condition(2)
            return Text(f"COUNT_IF({each.ours})", f"COUNT(CASE WHEN {each.theirs} THEN 1 END)")
        if name in ("MIN", "MAX", "COUNT"):
            each = self.rng.choice([self.number, self.text, self.condition])(2)
        else:
            each = self.number(2)
        return Text(f"{name}({each.ours})", f"{name}({each.theirs})")

    def number(self, depth: int) -> Text:
        if depth == 0 or self.rng.random() < 0.2:
            return self._leaf()
        choices = (
            self._arithmetic, self._division, self._rounding, self._choice, self._choice, self._case, self._cast,
            self._of_text, self._of_time,
        )  # fmt: skip
        return self.rng.choice(choices)(depth - 1)

    def _leaf(self) -> Text:
        draw = self.rng.random()
        if self.made and draw < 0.3:
            return self.rng.choice(self.made)
        if draw < 0.7:
            name = "u" if draw < 0.04 and "r" in self.numbers else self.rng.choice(self.numbers)
            return Text(name, name, name in "ijny")
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
        name = self.rng.choice(["ABS", "FLOOR", "CEIL", "ROUND", "ROUND2", "TRUNC", "SIGN", "SQRT", "-"])
        if name == "-":
            return Text(f"(- {a.ours})", f"(- {a.theirs})", a.whole)
        if name == "ROUND2":
            digits = self.rng.choice([-1, 0, 1])
            return Text(f"ROUND({a.ours}, {digits})", f"ROUND({a.theirs}, {digits})", a.whole)
        if name == "SQRT":
            return Text(f"SQRT({a.ours})", f"CASE WHEN {a.theirs} >= 0 THEN SQRT({a.theirs}) END")
        if name == "SIGN":
            return Text(f"SIGN({a.ours})", f"CAST(SIGN({a.theirs}) AS BIGINT)", whole=True)
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

    def _case(self, depth: int) -> Text:
        """CASE of both forms, and IF."""
        arms = [self.number(depth) for _ in range(3)]
        tests = [self.condition(max(depth, 1)) for _ in range(2)]
        subject = self.number(0)
        form = self.rng.choice(["searched", "searched", "simple", "if"])
        keep = self.rng.random() < 0.5

        def spelt(number: str, *rest: str) -> str:
            a, b, c, p, q = rest
            otherwise = f" ELSE {c}" if keep else ""
            if form == "if":
                return f"IF({p}, {a}, {b})"
            if form == "simple":
                return f"(CASE {number} WHEN 1 THEN {a} WHEN {c} THEN {b}{otherwise} END)"
            return f"(CASE WHEN {p} THEN {a} WHEN {q} THEN {b}{otherwise} END)"

        parts = [subject, *arms, *tests]
        return Text(
            spelt(*(each.ours for each in parts)),
            spelt(*(each.theirs for each in parts)),
            all(each.whole for each in arms),
        )

    def _cast(self, depth: int) -> Text:
        kind = self.rng.choice(["boolean", "integer", "double", "text"])
        if kind == "boolean":
            a = self.condition(depth)
            return Text(f"CAST({a.ours} AS INTEGER)", f"CAST(CAST({a.theirs} AS INTEGER) AS BIGINT)", whole=True)
        if kind == "integer":
            a = self.number(depth)
            return Text(f"CAST({a.ours} AS INTEGER)", f"CAST(TRY_CAST({a.theirs} AS INTEGER) AS BIGINT)", whole=True)
        if kind == "double":
            a = self.number(depth)
            return Text(f"CAST({a.ours} AS DOUBLE)", f"CAST({a.theirs} AS DOUBLE)")
        a = self.text(depth)
        return Text(f"TRY_CAST({a.ours} AS DOUBLE)", f"TRY_CAST({a.theirs} AS DOUBLE)")

    def _of_text(self, depth: int) -> Text:
        a = self.text(depth)
        if self.rng.random() < 0.5:
            return Text(f"LEAST(LENGTH({a.ours}), 30)", f"LEAST(LENGTH({a.theirs}), 30)", whole=True)
        part = self.rng.choice(_WORDS)
        return Text(f"LEAST(STRPOS({a.ours}, {part}), 9)", f"LEAST(STRPOS({a.theirs}, {part}), 9)", whole=True)

    def _of_time(self, _depth: int) -> Text:
        a, b = self.time(), self.time()
        if self.rng.random() < 0.6:
            part = self.rng.choice(_PARTS)
            text = f"EXTRACT({part} FROM {a})"
        else:
            unit = self.rng.choice(["day", "week", "month", "quarter", "year"])
            text = f"DATE_DIFF('{unit}', {a}, {b})"
        return Text(text, text, whole=True)

    def time(self) -> str:
        """The same in both spellings."""
        if "r" not in self.numbers:  # over an answer, which has no times
            return self.rng.choice(_DAYS)
        draw = self.rng.random()
        if draw < 0.6:
            return self.rng.choice(["d", "e", "w", "v", "d", "w"])
        if draw < 0.7:
            return self.rng.choice(_DAYS)
        a = self.rng.choice(["d", "e", "w", "v"])
        unit = self.rng.choice(["month", "week", "year", "quarter", "day"])
        return self.rng.choice(
            [
                f"DATE_TRUNC('{unit}', {a})",
                f"({a} + INTERVAL {self.rng.randint(0, 20)} {unit.upper()})",
                f"({a} - INTERVAL {self.rng.randint(0, 20)} {unit.upper()})",
                f"CAST({a} AS DATE)",
                f"CAST({a} AS TIMESTAMP)",
                f"LAST_DAY({a})",
            ]
        )

    def condition(self, depth: int) -> Text:
        if depth == 0:
            return self._truth()
        rules = (
            self._junction, self._junction, self._not, self._compared, self._compared, self._membership, self._between,
            self._null, self._is, self._compared_texts, self._like, self._part_of, self._compared_times, self._distinct,
            self._chosen_truth,
        )  # fmt: skip
        return self._truth() if self.rng.random() < 0.07 else self.rng.choice(rules)(depth)

    def _junction(self, depth: int) -> Text:
        a, b, word = self.condition(depth - 1), self.condition(depth - 1), self.rng.choice(["AND", "OR"])
        return Text(f"({a.ours} {word} {b.ours})", f"({a.theirs} {word} {b.theirs})")

    def _not(self, depth: int) -> Text:
        a = self.condition(depth - 1)
        return Text(f"(NOT {a.ours})", f"(NOT {a.theirs})")

    def _compared(self, depth: int) -> Text:
        return self._comparison(self.number(depth - 1), self.number(depth - 1))

    def _compared_texts(self, depth: int) -> Text:
        return self._comparison(self.text(depth - 1), self.text(depth - 1))

    def _compared_times(self, _depth: int) -> Text:
        a, b = self.time(), self.time()
        sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
        return Text(f"({a} {sign} {b})", f"({a} {sign} {b})")

    def _between(self, depth: int) -> Text:
        a, b, c = (self.number(depth - 1) for _ in range(3))
        word = self.rng.choice(["BETWEEN", "NOT BETWEEN"])
        return Text(f"({a.ours} {word} {b.ours} AND {c.ours})", f"({a.theirs} {word} {b.theirs} AND {c.theirs})")

    def _null(self, depth: int) -> Text:
        a = self.rng.choice([self.number, self.condition, self.text])(depth - 1)
        word = self.rng.choice(["IS NULL", "IS NOT NULL"])
        return Text(f"({a.ours} {word})", f"({a.theirs} {word})")

    def _is(self, depth: int) -> Text:
        a = self.condition(depth - 1)
        word = self.rng.choice(["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"])
        return Text(f"({a.ours} {word})", f"({a.theirs} {word})")

    def _like(self, depth: int) -> Text:
        a, form = self.text(depth - 1), self.rng.choice([each for each in _PATTERNS if self._has("x") or each != "x"])
        word = self.rng.choice(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"])
        return Text(f"({a.ours} {word} {form})", f"({a.theirs} {word} {form})")

    def _part_of(self, depth: int) -> Text:
        a, b = self.text(depth - 1), self.text(0)
        name = self.rng.choice(["STARTS_WITH", "ENDS_WITH", "CONTAINS"])
        return Text(f"{name}({a.ours}, {b.ours})", f"{name}({a.theirs}, {b.theirs})")

    def _distinct(self, depth: int) -> Text:
        draw = self.rng.choice([self.number, self.text, self.condition])
        a, b = draw(depth - 1), draw(depth - 1)
        word = self.rng.choice(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        return Text(f"({a.ours} {word} {b.ours})", f"({a.theirs} {word} {b.theirs})")

    def _chosen_truth(self, depth: int) -> Text:
        p, a, b = (self.condition(depth - 1) for _ in range(3))
        form = "(CASE WHEN {} THEN {} ELSE {} END)"
        return Text(form.format(p.ours, a.ours, b.ours), form.format(p.theirs, a.theirs, b.theirs))

    def _truth(self) -> Text:
        number = self.numbers[0]
        name = self.rng.choice([*self.booleans, *self.booleans, "TRUE", "FALSE", f"({number} > 3)", f"({number} < 1)"])
        return Text(name, name)

    def _has(self, column: str) -> bool:
        """Whether the rows are the table's own, not those of an answer."""
        return column in "rux" and "r" in self.numbers

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
        draw = self.rng.random()
        if depth <= 0 or draw < 0.4:
            if self.named and draw < 0.15:
                return self.rng.choice(self.named)
            names = self.texts if self._has("x") else ""
            word = self.rng.choice([*names, *_WORDS])
            return Text(word, word)
        a = self.text(depth - 1)
        if draw < 0.55:
            b = self.text(depth - 1)
            form = self.rng.choice(["COALESCE({}, {})", "NULLIF({}, {})", "({} || {})", "CONCAT({}, {})"])
            return Text(form.format(a.ours, b.ours), form.format(a.theirs, b.theirs))
        if draw < 0.65:
            p, b = self.condition(1), self.text(depth - 1)
            form = self.rng.choice(["(CASE WHEN {} THEN {} ELSE {} END)", "IF({}, {}, {})"])
            return Text(form.format(p.ours, a.ours, b.ours), form.format(p.theirs, a.theirs, b.theirs))
        if draw < 0.75:
            name = self.rng.choice([each for each in self.numbers if each != "r"])
            return Text(f"CAST({name} AS VARCHAR)", f"CAST({name} AS VARCHAR)")
        count = self.rng.randint(0, 4)
        form = self.rng.choice(
            [
                "UPPER({0})", "LOWER({0})", "TRIM({0})", "LTRIM({0}, 'a')", "RTRIM({0}, 'bc')", "REVERSE({0})",
                f"SUBSTRING({{0}}, {count + 1})", f"SUBSTRING({{0}}, {count - 2}, 2)", f"LEFT({{0}}, {count})",
                f"RIGHT({{0}}, {count})", "REPLACE({0}, 'a', 'bb')", f"REPEAT({{0}}, {count})",
                f"LPAD({{0}}, {count + 1}, '*')", f"RPAD({{0}}, {count + 1}, 'xy')", "CONCAT_WS('-', {0}, 'x')",
            ]
        )  # fmt: skip
        return Text(form.format(a.ours), form.format(a.theirs))


def _clamp(ours: str, theirs: str, low: int, high: int) -> tuple[str, str]:
    spelt = f"(CASE WHEN {theirs} IS NOT NULL THEN LEAST(GREATEST({theirs}, {low}), {high}) END)"
    return f"CLAMP({ours}, {low}, {high})", spelt


def _sql(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value + "'" if isinstance(value, str) else str(value).upper()


def _values(place: int, key: Key) -> str:
    assert key.values is not None
    rows = ", ".join(f"(CAST({_sql(value)} AS {key.type}))" for value in key.values)
    return f"(VALUES {rows}) AS list{place}(listed{place})"


def _as_key(key: Key) -> str:
    """The one declared list with NULL in it takes values outside it for NULL."""
    if not key.else_null:
        return key.theirs
    return f"CASE WHEN {_inside(key.theirs, key)} THEN {key.theirs} END"


def _inside(text: str, key: Key) -> str:
    """Only the rows of listed keys are in a group."""
    if key.values is None:
        return "TRUE"
    present = ", ".join(_sql(value) for value in key.values if value is not None)
    return f"({text} IN ({present}){f' OR {text} IS NULL' if None in key.values else ''})"
