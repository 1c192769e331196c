"""Statements made by a grammar over shown rows give what DuckDB gives over the same rows, and what SQLite does where
both know the words; and no word or text of a statement is a way to a file, a variable, the environment or a table."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dpsql.errors import PostprocessFailed, QueryRefused
from dpsql.plan.expressions import Vector
from dpsql.postprocess.allowed_sql import FUNCTIONS, TABLE_FUNCTIONS
from dpsql.postprocess.database import bound, run
from dpsql.postprocess.frames import Frame, Header
from dpsql.schema.columns import Type

KINDS = {"k": Type.TEXT, "g": Type.INTEGER, "n": Type.INTEGER, "x": Type.REAL, "i": Type.INTEGER, "w": Type.INTEGER}
A = pd.DataFrame(
    {
        "k": ["bonn", "oslo", None, "rome", "bonn", "oslo", "wien", "bonn", None, "rome", "oslo", "bonn"],
        "g": [1, 2, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1],
        "n": [5, 3, None, 8, 5, -2, 0, 7, 3, None, 8, 5],
        "x": [0.5, -1.25, 2.0, None, 8.5, 0.0, 3.75, -2.5, 1.0, 0.25, None, 6.0],
        "i": range(12),
    }
)
C = pd.DataFrame({"k": ["bonn", "oslo", "paris", None, "bonn"], "w": [10, 20, 30, 40, 50]})
TABLES = {"a": A, "c": C}


def frame_of(rows: pd.DataFrame) -> Frame:
    vectors = []
    for name in rows.columns:
        valid = rows[name].notna().to_numpy()
        kind = KINDS[str(name)]
        cells = [
            ("" if kind is Type.TEXT else 0) if not there else cell
            for cell, there in zip(rows[name], valid, strict=True)
        ]
        dtype: Any = {Type.TEXT: object, Type.REAL: np.float64}.get(kind, np.int64)
        vectors.append(Vector(np.array(cells, dtype=dtype), valid))
    return Frame(tuple(map(str, rows.columns)), tuple(KINDS[str(name)] for name in rows.columns), tuple(vectors))


FRAMES = {name: frame_of(rows) for name, rows in TABLES.items()}
HEADERS = [Header(name, tuple(zip(each.names, each.types, strict=True)), len(each)) for name, each in FRAMES.items()]


def ours(sql: str) -> list[tuple[Any, ...]]:
    rows = run(bound(sql, HEADERS), FRAMES)
    columns = [
        [cell if there else None for cell, there in zip(each.values.tolist(), each.where_valid().tolist(), strict=True)]
        for each in rows.vectors
    ]
    return list(zip(*columns, strict=True))


def created(connection: Any) -> None:
    """The tables in SQLite or DuckDB."""
    for name, rows in TABLES.items():
        words = {Type.TEXT: "VARCHAR", Type.REAL: "DOUBLE", Type.INTEGER: "BIGINT"}
        columns = ", ".join(f"{column} {words[KINDS[column]]}" for column in rows.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        cells = rows.astype(object).where(rows.notna(), None)
        marks = ", ".join("?" * len(rows.columns))
        whole = {column for column in rows.columns if KINDS[column] is Type.INTEGER}
        values = [
            [int(v) if v is not None and column in whole else v for column, v in zip(rows.columns, row, strict=True)]
            for row in cells.itertuples(index=False)
        ]
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)


def alike(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    """Whether rows are the same, in whatever order."""

    def key(row: tuple[Any, ...]) -> list[tuple[bool, str, float]]:
        return [
            (cell is None, cell if isinstance(cell, str) else "", 0.0 if isinstance(cell, str | None) else float(cell))
            for cell in row
        ]

    def same(cell: Any, again: Any) -> bool:
        if cell is None or again is None or isinstance(cell, str) or isinstance(again, str):
            return bool(cell == again)
        return math.isclose(float(cell), float(again), rel_tol=1e-9, abs_tol=1e-9)

    def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [tuple(round(cell, 9) if isinstance(cell, float) else cell for cell in row) for row in rows]

    pairs = zip(sorted(rounded(one), key=key), sorted(rounded(other), key=key), strict=False)
    return len(one) == len(other) and all(len(row) == len(again) and all(map(same, row, again)) for row, again in pairs)


class Grammar:
    """Statements that SQLite reads too, or, with `more`, words that DuckDB alone has."""

    def __init__(self, seed: int, *, more: bool) -> None:
        self.draw, self.more = Random(seed), more

    def one(self, *of: str) -> str:
        return self.draw.choice(of)

    def number(self, depth: int = 0) -> str:
        if depth > 1 or self.draw.random() < 0.4:
            return self.one("a.n", "a.g", "a.x", "a.i", "3")
        first, second = self.number(depth + 1), self.number(depth + 1)
        forms = [
            f"({first} {self.one('+', '-', '*')} {second})",
            f"COALESCE({first}, 0)",
            f"ABS({first})",
            f"CASE WHEN {self.condition(depth + 1)} THEN {first} ELSE {second} END",
            f"NULLIF({first}, {second})",
        ]
        if self.more:
            forms += [f"LIST_SUM([{first}, {second}])", f"STRUCT_EXTRACT({{'p': {first}}}, 'p')", f"[{first}, 1][1]"]
        return self.one(*forms)

    def condition(self, depth: int = 0) -> str:
        first, second = self.number(depth + 1), self.number(depth + 1)
        forms = [
            f"{first} {self.one('<', '<=', '>', '=', '<>')} {second}",
            f"a.k {self.one('=', '<', '>')} 'oslo'",
            f"a.k {self.one('IS', 'IS NOT')} NULL",
            "a.k LIKE '%o%'",
            "a.g BETWEEN 1 AND 2",
            "a.k IN (SELECT k FROM c WHERE w > 10 AND k IS NOT NULL)",
            "a.g NOT IN (SELECT w / 10 FROM c WHERE w > 15 AND w < 25)",
            "EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.w > 20)",
            "a.n > (SELECT AVG(n) FROM a)",
        ]
        if depth == 0 and self.draw.random() < 0.3:
            return f"({self.condition(1)} {self.one('AND', 'OR')} NOT ({self.condition(1)}))"
        return self.one(*forms)

    def window(self) -> str:
        by = self.one("", "PARTITION BY a.k ", "PARTITION BY a.g ")
        frame = self.one("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING")
        plain = f"({by}ORDER BY a.i{self.one('', ' DESC')})"
        total = f"{self.one('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}({self.number()}) OVER ({by}ORDER BY a.i{frame})"
        return self.one(
            total,
            total,
            f"{self.one('RANK', 'DENSE_RANK', 'CUME_DIST', 'PERCENT_RANK')}() OVER ({by}ORDER BY a.g)",
            f"ROW_NUMBER() OVER {plain}",
            f"NTILE({self.one('2', '3')}) OVER {plain}",
            f"{self.one('LAG', 'LEAD')}({self.number()}, {self.one('1', '2')}) OVER {plain}",
            f"FIRST_VALUE({self.number()}) OVER {plain}",
            f"SUM({self.number()}) FILTER (WHERE {self.condition()}) OVER ({by}ORDER BY a.i)",
            "SUM(a.n) OVER ()",
        )

    def source(self) -> str:
        return self.one(
            "a",
            "a",
            "(SELECT * FROM a WHERE g > 1) AS a",
            "a JOIN c ON a.k = c.k",
            "a LEFT JOIN c ON a.k = c.k AND c.w > 10",
            "a JOIN a b ON a.g = b.g AND a.i < b.i",
            "a CROSS JOIN (SELECT MAX(w) AS top FROM c) AS m",
        )

    def select(self) -> str:
        where = f" WHERE {self.condition()}" if self.draw.random() < 0.5 else ""
        kind = self.draw.random()
        if kind < 0.35:
            keys = self.one("a.k", "a.g", "a.k, a.g")
            having = f" HAVING COUNT(*) > {self.one('0', '1')}" if self.draw.random() < 0.4 else ""
            totals = f"COUNT(*) AS p, {self.one('SUM', 'AVG', 'MIN', 'MAX')}({self.number()}) AS q"
            more = ", SUM(COUNT(*)) OVER () AS r" if self.draw.random() < 0.4 else ", COUNT(DISTINCT a.n) AS r"
            return f"SELECT MAX(a.k) AS o, {totals}{more} FROM {self.source()}{where} GROUP BY {keys}{having}"
        if self.more and kind < 0.5:
            return (
                f"SELECT a.k AS o, a.i AS p, {self.number()} AS q, a.g AS r FROM a{where} "
                "QUALIFY ROW_NUMBER() OVER (PARTITION BY a.g ORDER BY a.i) <= 2"
            )
        if self.more and kind < 0.6:
            return (
                f"SELECT DISTINCT ON (a.g) a.k AS o, a.i AS p, {self.number()} AS q, a.g AS r FROM a ORDER BY a.g, a.i"
            )
        return (
            f"SELECT {self.one('', 'DISTINCT ')}a.k AS o, a.i AS p, {self.window()} AS q, {self.number()} AS r "
            f"FROM {self.source().replace('a JOIN a b', 'a JOIN (SELECT g, i FROM a WHERE i < 3) b')}{where}"
        )

    def statement(self) -> str:
        kind = self.draw.random()
        if kind < 0.2:
            word = self.one("UNION ALL", "UNION", "INTERSECT", "EXCEPT")
            first, second = self.select(), self.select()
            if "DISTINCT ON" in first + second or "QUALIFY" in first + second:
                return f"SELECT * FROM ({first}) AS y {word} SELECT * FROM ({second}) AS z"
            return f"{first} {word} {second}"
        if kind < 0.35:
            return f"WITH y AS ({self.select()}) SELECT o, COUNT(*) AS s, SUM(q) AS t FROM y GROUP BY o"
        if kind < 0.5:
            return f"SELECT y.o, z.w, (SELECT COUNT(*) FROM c) AS s FROM ({self.select()}) AS y JOIN c z ON z.k = y.o"
        return self.select()


def check_grammar(seeds: range, *, more: bool) -> None:
    with duckdb.connect() as plain, sqlite3.connect(":memory:") as lite:
        created(plain)
        created(lite)
        asked, refused = 0, list[str]()
        for seed in seeds:
            sql = Grammar(seed, more=more).statement()
            try:
                expected = plain.execute(sql).fetchall()
            except duckdb.Error:  # the two halves of UNION may differ in type
                continue
            try:
                answer = ours(sql)
            except QueryRefused as refusal:
                refused.append(f"{refusal} {sql}")
                continue
            asked += 1
            assert alike(answer, expected), sql
            if not more:
                assert alike(answer, lite.execute(sql).fetchall()), sql
        assert asked > 0.8 * len(seeds), refused


def test_statements_give_what_sqlite_and_duckdb_give() -> None:
    check_grammar(range(40), more=False)


def test_words_of_duckdb_give_what_it_gives() -> None:
    check_grammar(range(40), more=True)


@pytest.mark.slow
def test_many_statements_give_what_others_give() -> None:
    check_grammar(range(1_000, 5_000), more=False)
    check_grammar(range(1_000, 5_000), more=True)


# By hand.


def test_windows_joins_and_sets_by_hand() -> None:
    by_k = A.groupby("k")["n"]
    shares = A["n"] / by_k.transform("sum")
    found = ours("SELECT i, n / SUM(n) OVER (PARTITION BY k) AS s FROM a WHERE k IS NOT NULL")
    assert alike(found, [(i, None if math.isnan(s) else s) for i, s in shares[A.k.notna()].items()])
    running = A["x"].fillna(0).cumsum()
    assert alike(ours("SELECT i, SUM(COALESCE(x, 0)) OVER (ORDER BY i) AS s FROM a"), list(running.items()))
    joined = A[["k", "i"]].dropna().merge(C.dropna(), on="k")
    assert alike(ours("SELECT i, w FROM a JOIN c USING (k)"), list(joined[["i", "w"]].itertuples(index=False)))
    left = A[["k", "i"]].merge(C.dropna(), on="k", how="left")
    rows = [(i, None if math.isnan(w) else w) for i, w in zip(left["i"], left["w"], strict=True)]
    assert alike(ours("SELECT i, w FROM a LEFT JOIN c USING (k)"), rows)
    cities = [set(each.dropna()) for each in (A.k, C.k)]
    for word, together in (("INTERSECT", cities[0] & cities[1]), ("EXCEPT", cities[0] - cities[1])):
        found = ours(f"SELECT k FROM a WHERE k IS NOT NULL {word} SELECT k FROM c WHERE k IS NOT NULL")
        assert {k for (k,) in found} == together


# No way out.

MARK = "8472-in-private"
PRIVATE = pd.DataFrame({"z": [MARK]})
"""A Python variable that a text might name."""


def outcome(sql: str) -> str:
    """The rows of a statement, or why there are none."""
    try:
        return str(ours(sql))
    except (QueryRefused, PostprocessFailed) as error:
        return f"refused: {error}"


def test_no_text_reads_a_file_a_variable_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function and table function of DuckDB's catalog, with texts that name what must not be read, and each of
    these texts as a table."""
    path = tmp_path / "secret.csv"
    path.write_text(f"z\n{MARK}\n")
    (tmp_path / "secret.json").write_text(f'{{"z": "{MARK}"}}\n')
    monkeypatch.setenv("DPSQL_SECRET", MARK)
    private = PRIVATE
    assert len(private) == 1
    names = [str(path), str(tmp_path / "secret.json"), "DPSQL_SECRET", "PRIVATE", "private", "people"]
    catalog = (
        duckdb.connect().execute("SELECT DISTINCT function_name, function_type FROM duckdb_functions()").fetchall()
    )
    texts = [f"SELECT * FROM {quoted}" for name in names for quoted in (f"'{name}'", f'"{name}"')]
    for number, (word, kind) in enumerate(sorted(catalog)):
        name = names[number % len(names)]
        if "table" in kind or kind == "pragma":
            texts.append(f"SELECT * FROM \"{word}\"('{names[0]}')")
        elif 1 in FUNCTIONS.get(word, ()):
            call = f"('{name}').\"{word}\"()" if number % 2 else f"\"{word}\"('{name}')"
            texts.append(f"SELECT CAST({call} AS VARCHAR) AS z")
        elif word not in FUNCTIONS and number % 4 == 0:  # test_machine.py calls all of them otherwise
            texts.append(f"SELECT ('{name}').\"{word}\"() AS z")
    ran, listed = 0, {*FUNCTIONS, *TABLE_FUNCTIONS}
    for text in texts:
        said = outcome(text)
        assert MARK not in said, text
        ran += said.startswith("[")
        assert not said.startswith("[") or any(f'"{word}"' in text for word in listed), text
    assert ran > 30
