"""Peak memory of statements of one repeated form, printed as lines of JSON.

Run `python -m tests.executors.planning_memory ENGINE CHARACTERS`.

Each form is a text of which one piece is repeated. The largest number of repetitions is taken that fits the characters
and that the language does not refuse.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

import dpsql

FROM = "SELECT COUNT(*) AS n FROM "
COUNT = FROM + "people WHERE "


def _joined(separator: str, piece: str) -> Callable[[int], str]:
    return lambda number: separator.join(piece.replace("{i}", str(each)) for each in range(number))


def _where(separator: str, piece: str) -> Callable[[int], str]:
    return lambda number: COUNT + _joined(separator, piece)(number)


def _around(before: str, separator: str, piece: str, after: str) -> Callable[[int], str]:
    return lambda number: before + _joined(separator, piece)(number) + after


def _nested(start: str, before: str, middle: str, after: str, rest: str = "") -> Callable[[int], str]:
    return lambda number: start + before * number + middle + after * number + rest


def _stacked(number: int) -> str:
    """Twelve sub-queries, each with a condition, over one with a long list."""
    listed = _joined(" OR ", "x = {i}")(number)
    closed = "".join(f") AS t WHERE x <> {each}" for each in range(12))
    return f"SELECT COUNT(*) AS n FROM {'(SELECT x FROM ' * 12}people WHERE {listed}{closed}"


CHAIN = " || ".join(["s"] * 100)
FORMS: dict[str, Callable[[int], str]] = {
    "and of not equal": _where(" AND ", "NOT (x = {i})"),
    "and of unequal": _where(" AND ", "x <> {i}"),
    "and of not between": _where(" AND ", "x NOT BETWEEN {i} AND {i}"),
    "and of not like": _where(" AND ", "s NOT LIKE '%{i}%'"),
    "and of or": _where(" AND ", "(x = {i} OR y = {i})"),
    "or": _where(" OR ", "x = {i}"),
    "or of and": _where(" OR ", "(x = {i} AND y > {i})"),
    "not of or": _around(COUNT + "NOT (", " OR ", "x = {i}", ")"),
    "or of like": _where(" OR ", "s LIKE '%a%b%{i}%'"),
    "or of patterns": _where(" OR ", "REGEXP_MATCHES(LEFT(s, 64), '(a|b){5}{i}')"),
    "or of casts": _where(" OR ", "CAST(x AS TEXT) = '{i}'"),
    "or of dates": _where(" OR ", "TRY_CAST(s AS DATE) > DATE '2000-01-01'"),
    "or of case": _where(" OR ", "CASE x WHEN {i} THEN y ELSE x END > {i}"),
    "or of chains": _where(" OR ", f"{CHAIN} = 'a{{i}}'"),
    "unequal and a long or": _around(COUNT + _joined(" AND ", "x <> {i}")(15) + " AND (", " OR ", "x = {i}", ")"),
    "in": _around(COUNT + "x IN (", ", ", "{i}", ")"),
    "in of expressions": _around(COUNT + "x IN (", ", ", "y + {i}", ")"),
    "not in": _around(COUNT + "x NOT IN (", ", ", "{i}", ")"),
    "in of texts": _around(COUNT + "s IN (", ", ", "'t{i}'", ")"),
    "in of sub-queries": _where(" AND ", "x NOT IN (SELECT * FROM (VALUES ({i})))"),
    "case": _around(COUNT + "CASE ", " ", "WHEN x = {i} THEN {i}", " ELSE 0 END > 5"),
    "case in case": lambda number: (
        COUNT + _joined(" ", "CASE WHEN x = {i} THEN {i} ELSE")(number) + " 0" + " END" * number + " > 5"
    ),
    "coalesce": _around(COUNT + "COALESCE(", ", ", "NULLIF(x, {i})", ") > 5"),
    "greatest": _around(COUNT + "GREATEST(", ", ", "x + {i}", ") > 5"),
    "concat": _around(COUNT + "CONCAT(", ", ", "s", ") = 'a'"),
    "concat_ws": _around(COUNT + "CONCAT_WS('-', ", ", ", "s", ") = 'a'"),
    "sum of terms": _around(COUNT, " + ", "x", " > 5"),
    "sums": _where(" OR ", "x + x * 2 + x * 3 + x * {i} > {i}"),
    "nested functions": _nested(COUNT, "ABS(", "x", ")", " > 5"),
    "nested replace": _nested(COUNT, "REPLACE(", "s", ", 'a', 'b')", " = 'b'"),
    "nested sub-queries": _nested(FROM, "(SELECT x FROM ", "people", ") AS t"),
    "doubled in sub-queries": _nested(FROM, "(SELECT x + x AS x FROM ", "people", ") AS t", " WHERE x > 3"),
    "doubled texts": _nested(FROM, "(SELECT s || s AS s FROM ", "people", ") AS t", " WHERE s > 'a'"),
    "stacked conditions": _stacked,
    "union all": _around(FROM + "(", " UNION ALL ", "SELECT x FROM people", ") AS t"),
    "columns": _around("SELECT ", ", ", "COUNT(CASE WHEN x = {i} THEN 1 END) AS c{i}", " FROM people"),
    "columns of sums": _around("SELECT ", ", ", "SUM(x + {i}) AS c{i}", " FROM people"),
    "columns of filters": _around("SELECT ", ", ", "COUNT(*) FILTER (WHERE x = {i}) AS c{i}", " FROM people"),
    "columns of answers": _around("SELECT ", ", ", "COUNT(*) + {i} AS c{i}", " FROM people"),
    "case of answers": _around("SELECT CASE ", " ", "WHEN COUNT(*) > {i} THEN {i}", " END AS c FROM people"),
    "having": _around(FROM + "people HAVING ", " AND ", "NOT (COUNT(*) = {i})", ""),
    "order by": _around("SELECT s, COUNT(*) AS n FROM people GROUP BY s ORDER BY ", ", ", "COUNT(*) + {i}", ""),
    "group by a case": _around(
        "SELECT CASE ", " ", "WHEN x = {i} THEN {i}", " ELSE 0 END AS k, COUNT(*) AS n FROM people GROUP BY k"
    ),
    "windows": _around("SELECT ", ", ", "SUM(COUNT(*)) OVER (ORDER BY COUNT(*) + {i}) AS c{i}", " FROM people"),
    "inner columns": lambda number: (
        f"SELECT COUNT(*) AS n FROM (SELECT {_joined(', ', 'x + {i} AS c{i}')(number)} FROM people) AS t"
        f" WHERE {_joined(' AND ', 'NOT (c{i} = 3)')(number)}"
    ),
    "values": _around(FROM + "people JOIN (VALUES ", ", ", "({i})", ") AS v(p) ON x = p"),
    "condition of a join": _around(
        FROM + "people LEFT JOIN (VALUES (1, 2)) AS v(p, q) ON x = p AND ", " AND ", "NOT (q = {i})", ""
    ),
    "any of a list": _around(COUNT + "x = ANY ([", ", ", "{i}", "])"),
}


def repetitions(form: Callable[[int], str], most: int) -> int:
    """The largest number of repetitions whose text has at most so many characters."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(form(middle)) <= most else (low, middle - 1)
    return low


def _peak() -> float:
    """The most memory since the last call of `_reset`, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def _reset() -> float:
    """Give freed memory back, forget the peak, and return what is in use, in MB."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def measured(engine: str, most: int) -> Iterator[tuple[str, int, float]]:
    """For each form: how many repetitions were answered, and the memory that this and refusals took at most, in MB."""
    frame = pd.DataFrame({"x": [1, 2, 3] * 50, "s": ["a", "b", "c"] * 50, "y": [0.5, 1.5, 2.5] * 50})
    table = dpsql.Table(frame, bounds={"x": (0, 100), "y": (0, 3)}, keys={"s": ["a", "b", "c"]})
    session = dpsql.Session({"people": table}, budget=dpsql.Budget(epsilon=1e9), engine=engine)
    session.query(COUNT + "x = 1", epsilon=1.0)
    # The first window loads DuckDB for post-processing, which is no memory of a text.
    session.query("SELECT s, SUM(COUNT(*)) OVER () FROM people GROUP BY s", epsilon=1.0)
    for name, form in FORMS.items():
        before = _reset()
        number = repetitions(form, most)
        while number and not _is_answered(session, form(number)):
            number //= 2
        yield name, number, _peak() - before


def _is_answered(session: dpsql.Session, text: str) -> bool:
    try:
        session.query(text, epsilon=1.0)
    except dpsql.errors.QueryRefused:
        return False
    return True


if __name__ == "__main__":
    for each in measured(sys.argv[1], int(sys.argv[2])):
        sys.stdout.write(json.dumps(each) + "\n")
