"""The locked DuckDB: what it computes, what it refuses, and that it has a way to nothing but its frames."""

import os
import threading
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.errors import PostprocessFailed, QueryRefused, SQLSyntaxError, UnknownTable, UnsupportedSQL
from dpsql.plan.expressions import Vector
from dpsql.postprocess import database as machine
from dpsql.postprocess.allowed_sql import FUNCTIONS, TABLE_FUNCTIONS, WINDOWS
from dpsql.postprocess.database import bound, opened, run
from dpsql.postprocess.frames import Frame, Header
from dpsql.schema.columns import Type

SECRET = [8472]
"""A Python variable, for texts that try to read one."""

COLUMNS = (
    ("k", Type.TEXT),
    ("n", Type.INTEGER),
    ("x", Type.REAL),
    ("b", Type.BOOLEAN),
    ("d", Type.DATE),
    ("t", Type.TIMESTAMP),
)
HEADER = Header("a", COLUMNS, 100)


def _texts(*cells: str | None) -> Vector:
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return Vector(values, np.array([cell is not None for cell in cells]))


FRAME = Frame(
    tuple(name for name, _ in COLUMNS),
    tuple(kind for _, kind in COLUMNS),
    (
        _texts("b", "a", None),
        Vector(np.array([3, 1, 2])),
        Vector(np.array([0.5, np.nan, 2.0])),
        Vector(np.array([True, False, True]), np.array([True, True, False])),
        Vector(np.array([0, 1, 20_000])),
        Vector(np.array([0, 1_500_000, 10**15])),
    ),
)


def ask(sql: str, *others: tuple[Header, Frame], params: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    headers = [HEADER, *(header for header, _ in others)]
    frames = {"a": FRAME, **{header.name: frame for header, frame in others}}
    answer = run(bound(sql, headers, params), frames, params)
    columns = [
        [cell if there else None for cell, there in zip(each.values.tolist(), each.where_valid().tolist(), strict=True)]
        for each in answer.vectors
    ]
    return list(zip(*columns, strict=True))


def test_rows_go_in_and_come_out_as_they_are_in_order_of_all_columns():
    assert ask("SELECT * FROM a") == [
        ("a", 1, None, False, 1, 1_500_000),
        ("b", 3, 0.5, True, 0, 0),
        (None, 2, 2.0, None, 20_000, 10**15),
    ]
    ordered = Header("a", COLUMNS, 100, ordered=True)
    rows = run(bound("SELECT n FROM a", [ordered]), {"a": FRAME})
    assert rows.vectors[0].values.tolist() == [3, 1, 2]


def test_types_come_back_as_columns_here():
    sql = (
        "SELECT SUM(n * 3000000000000000000) AS big, AVG(n) AS mean, 1.5::DECIMAL(4, 2) AS cents, MAX(d), NULL AS no "
        "FROM a"
    )
    assert ask(sql) == [(18 * 10**18, 2.0, 1.5, 20_000, None)]
    kinds = bound(sql, [HEADER]).types
    assert kinds == (Type.INTEGER, Type.REAL, Type.REAL, Type.DATE, Type.INTEGER)
    for item in ("[n]", "{'a': n}", "MAP {'a': n}"):  # shown as JSON
        assert bound(f"SELECT {item} AS z FROM a", [HEADER]).types == (Type.TEXT,)
    for item in ("INTERVAL 1 DAY", "d - d + TIME '10:00'", "'a'::BLOB"):
        with pytest.raises(QueryRefused):
            bound(f"SELECT {item} AS z FROM a", [HEADER])


def test_parameters_are_values():
    assert ask("SELECT n + CAST($p AS BIGINT) AS m FROM a WHERE k = CAST($q AS TEXT)", params={"p": 5, "q": "a"}) == [
        (6,)
    ]
    assert ask("SELECT CAST($q AS TEXT) AS k FROM a LIMIT 1", params={"q": "'; DROP TABLE a"}) == [("'; DROP TABLE a",)]


def test_windows_joins_and_set_operations_are_computed():
    assert ask("SELECT n, RANK() OVER (ORDER BY n DESC) AS r, SUM(n) OVER () AS s FROM a ORDER BY n") == [
        (1, 3, 6),
        (2, 2, 6),
        (3, 1, 6),
    ]
    assert ask("SELECT n FROM a EXCEPT SELECT 2 ORDER BY n") == [(1,), (3,)]
    assert ask("SELECT l.n, r.n FROM a l JOIN a r ON l.n = r.n + 1 ORDER BY 1") == [(2, 1), (3, 2)]
    assert ask("SELECT LIST_TRANSFORM([1, 2], LAMBDA q : q + n)[2] AS z FROM a ORDER BY z LIMIT 1") == [(3,)]
    assert ask("SELECT DISTINCT ON (b) n FROM a ORDER BY b, n LIMIT 1") == [(1,)]


# What it has no way to.

ATTACKS = [
    "SELECT * FROM SECRET",
    "SELECT * FROM FRAME",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.csv'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/*')",
    "SELECT '/etc/passwd'.read_text()",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('a')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT json_serialize_sql('SELECT 1')",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM main.a",
    "SELECT * FROM (WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings), duckdb_settings",
    "SELECT * FROM temp.a",
    "SELECT main.abs(1)",
    "SELECT current_setting('memory_limit')",
    "SELECT getenv('HOME')",
    "SELECT getvariable('x')",
    "SELECT nextval('x')",
    "SELECT setseed(0.5)",
    "SELECT random()",
    "SELECT uuid()",
    "SELECT now()",
    "SELECT age(t) FROM a",
    "SELECT current_date",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT user",
    "SELECT localtime",
    "SELECT today()",
    "SELECT version()",
    "SELECT sleep_ms(1000)",
    "SELECT pg_sleep(1)",
    "SELECT error('x')",
    "SELECT write_log('x')",
    "SELECT n FROM a TABLESAMPLE 10%",
    "SELECT n FROM a USING SAMPLE 1",
    "SELECT k COLLATE nocase FROM a",
    "SELECT n AT TIME ZONE 'UTC' FROM a",
    "SELECT 1::JSON",
    "SELECT 'a'::ENUM('a')",
    "SELECT cast_to_type(1, 'a')",
    "SELECT * FROM a PIVOT (SUM(n) FOR b IN (TRUE))",
    "SELECT format('{:1000000000}', n) FROM a",
    "SELECT printf('%1000000000d', n) FROM a",
    "SELECT list_reduce([1, 2], LAMBDA p, q : p + q)",
    "SELECT levenshtein(k, k) FROM a",
    "SELECT list_resize([1], 1000000000)",
    "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT * FROM r",
    "SHOW TABLES",
    "DESCRIBE a",
    "SUMMARIZE a",
    "PRAGMA version",
    "SET threads = 2",
    "SET VARIABLE x = 1",
    "ATTACH ':memory:' AS other",
    "CREATE TABLE z AS SELECT 1",
    "INSERT INTO a SELECT * FROM a",
    "DROP TABLE a",
    "COPY a TO 'x.csv'",
    "EXPORT DATABASE 'x'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CALL duckdb_tables()",
    "SELECT 1; SELECT 2",
    "FROM (SHOW TABLES)",
]


@pytest.mark.parametrize("sql", ATTACKS)
def test_attacks_are_refused(sql: str):
    with pytest.raises(QueryRefused) as caught:
        bound(sql, [HEADER])
    assert "8472" not in str(caught.value)


def catalog(kind: str) -> list[tuple[str, int]]:
    sql = "SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() WHERE function_type = ? ORDER BY ALL"
    return [(name, size) for name, size in duckdb.connect().execute(sql, [kind]).fetchall()]


def test_every_table_function_of_duckdb_is_listed_or_refused():
    for kind in ("table", "table_macro", "pragma"):
        for name, size in catalog(kind):
            if name in TABLE_FUNCTIONS:
                continue
            for text in (", ".join(["1"] * size), "'/etc/passwd'", ""):
                with pytest.raises((UnsupportedSQL, SQLSyntaxError)):
                    bound(f'SELECT * FROM "{name}"({text})', [HEADER])


def test_every_function_of_duckdb_is_listed_or_refused():
    """By name and number of arguments, as DuckDB's own catalog has them, and with more of them than are listed."""
    refused = 0
    for kind in ("scalar", "aggregate", "macro"):
        for name, size in catalog(kind):
            if size in FUNCTIONS.get(name, ()):
                continue
            refused += 1
            with pytest.raises((UnsupportedSQL, SQLSyntaxError)) as caught:
                bound(f'SELECT "{name}"({", ".join(["n"] * size)}) FROM a', [HEADER])
            assert "DuckDB, which runs it" not in str(caught.value), f"{name} of {size} was stopped by DuckDB alone"
    assert refused > 700


def test_what_is_listed_is_there():
    known = {name for kind in ("scalar", "aggregate", "macro", "window") for name, _ in catalog(kind)}
    rewritten = {"coalesce", "nullif", "unnest", "if", "ifnull", "like_escape", "unbin"}
    assert not {name for name in {*FUNCTIONS, *WINDOWS} if name not in known} - rewritten


def test_no_listed_function_reads_clock_chance_or_settings():
    """Whatever DuckDB itself calls volatile, or says of the session, is not on the list, but of moments in a time zone,
    a type that nothing here has: a cast to it is refused."""
    sql = """SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT'
        AND NOT list_has_any(parameter_types, ['TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ_NS', 'TIME WITH TIME ZONE'])"""
    unstable = {name for (name,) in duckdb.connect().execute(sql).fetchall()}
    assert {"now", "random", "current_setting"} <= unstable
    # What else bears one of these names takes one's own number of arguments: AGE of two timestamps.
    assert {*FUNCTIONS, *TABLE_FUNCTIONS, *WINDOWS} & unstable <= {"age"}
    assert 1 not in FUNCTIONS["age"]
    for zoned in ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMETZ", "TIME WITH TIME ZONE"):
        with pytest.raises((UnsupportedSQL, SQLSyntaxError)):
            bound(f"SELECT CAST('2020-01-01 00:00:00' AS {zoned}) FROM a", [HEADER])
        with pytest.raises((UnsupportedSQL, SQLSyntaxError)):
            bound(f"SELECT HOUR(CAST('2020-01-01 00:00:00' AS {zoned})) FROM a", [HEADER])


def test_the_instance_is_locked():
    connection = opened()
    wanted = {
        "enable_external_access": "false",
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": "",
        "threads": "1",
        "lock_configuration": "true",
        "TimeZone": "UTC",
    }
    settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    assert {name: settings[name] for name in wanted} == wanted
    with pytest.raises(duckdb.Error):
        connection.execute("SET threads = 4")
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM SECRET")
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM read_text('/etc/passwd')")


def test_a_text_sees_its_own_frames_alone():
    other = (Header("z", (("i", Type.INTEGER),), 10), Frame(("i",), (Type.INTEGER,), (Vector(np.array([1])),)))
    assert ask("SELECT i FROM z", other) == [(1,)]
    with pytest.raises(UnknownTable):
        ask("SELECT i FROM z")
    with pytest.raises(PostprocessFailed):
        ask("SELECT error_free::INTEGER FROM (SELECT k AS error_free FROM a)")
    with pytest.raises(UnknownTable):  # a failure leaves nothing behind either
        bound("SELECT * FROM z", [Header("y", (("i", Type.INTEGER),), 10)])


def test_threads_do_not_see_one_anothers_frames():
    wrong: list[object] = []

    def work(number: int) -> None:
        header = Header("a", (("i", Type.INTEGER),), 10)
        frame = Frame(("i",), (Type.INTEGER,), (Vector(np.array([number])),))
        for _ in range(10):
            rows = run(bound("SELECT i FROM a", [header]), {"a": frame}).vectors[0].values.tolist()
            wrong.extend([] if rows == [number] else [rows])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


# Work that follows from the text.


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM generate_series(1, 1000000000000)",
        "SELECT * FROM range(2000000)",
        "SELECT * FROM generate_series(1, n) FROM a",
        "SELECT generate_series(1, n) FROM a",
        "SELECT repeat(k, 2000000000) FROM a",
        "SELECT repeat(k, n) FROM a",
        "SELECT repeat(repeat(k, 10000), 10000) FROM a",
        "SELECT lpad(k, 1000000, 'x') FROM a",
        "SELECT 1 FROM a, a b, a c, a d",
        "SELECT (SELECT COUNT(*) FROM a b, a c, a d WHERE d.n = a.n) FROM a",
        "WITH __cte_0 AS (SELECT 1 FROM a, a b) SELECT 1 FROM __cte_0, __cte_0 v",
        "SELECT 1 FROM range(100000), range(1000)",
        "SELECT list_filter(range(0, 100000), LAMBDA q : list_contains(range(0, 100000), -q - 1)) FROM a",
        "SELECT len(list_sort(range(0, 900000))) FROM range(1000)",
        "SELECT SUM(LENGTH(repeat('x', 10000) || i)) FROM range(1000000) s(i)",
        "SELECT LENGTH(" + "bin(" * 9 + "k" + ")" * 9 + ") FROM a",
        "SELECT LENGTH(" + "hex(" * 26 + "k" + ")" * 26 + ") FROM a",
        "SELECT UNNEST(range(1000000)), UNNEST(range(1000000)) FROM a",
        "SELECT list_transform(range(1000000), LAMBDA q : range(1000000)) FROM a",
        "SELECT n FROM a GROUP BY CUBE (n, k, x, b, d, t), CUBE (n, k, x, b, d, t), CUBE (n, k, x, b, d, t)",
        "SELECT " + "replace(" * 12 + "k" + ", 'a', 'aaaaaaaaaa')" * 12 + " AS z FROM a",
        "SELECT string_agg(k) AS z FROM (SELECT string_agg(k) AS k FROM (SELECT string_agg(k) AS k FROM a))",
    ],
)
def test_what_could_be_endless_is_refused_by_its_text(sql: str):
    with pytest.raises(QueryRefused):
        bound(sql, [HEADER])


def test_what_constants_alone_take_is_bounded_before_anything_is_charged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "SECONDS_OF_NO_ROW", 0.2)
    with pytest.raises(UnsupportedSQL, match="constants alone"):
        bound("SELECT MAX(m) AS m FROM (SELECT MODE(i) OVER (ORDER BY i) AS m FROM range(100000) s(i))", [])


def test_a_wide_cell_counts_as_wide_as_it_is():
    header = Header("a", (("k", Type.TEXT),), 10)
    wide = Frame(("k",), (Type.TEXT,), (_texts("x" * 50_000),))
    statement = bound("SELECT LENGTH(regexp_replace(k, '(.)', repeat('y', 4000), 'g')) AS n FROM a", [header])
    with pytest.raises(PostprocessFailed):
        run(statement, {"a": wide})


def test_a_slow_statement_does_not_hold_up_another_thread():
    entered, leave = threading.Event(), threading.Event()

    def slow(_connection: object) -> None:
        entered.set()
        assert leave.wait(60)

    thread = threading.Thread(target=machine.with_connection, args=(slow,))
    thread.start()
    assert entered.wait(60)
    assert ask("SELECT MAX(n) FROM a") == [(3,)]
    leave.set()
    thread.join()


def test_doubling_texts_through_subqueries_is_refused():
    sql = "SELECT k FROM a"
    for _ in range(20):
        sql = f"SELECT k || k AS k FROM ({sql})"
    with pytest.raises(UnsupportedSQL):
        bound(sql, [HEADER])


def test_work_is_seen_again_when_rows_are_there():
    header = Header("a", (("i", Type.INTEGER),), 10)
    many = Frame(("i",), (Type.INTEGER,), (Vector(np.arange(4_000)),))
    statement = bound("SELECT COUNT(*) AS n FROM a, a b", [header])
    with pytest.raises(PostprocessFailed):
        run(statement, {"a": many})


def test_what_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "SECONDS", 0.05)
    header = Header("a", (("i", Type.INTEGER),), 3_000)
    many = Frame(("i",), (Type.INTEGER,), (Vector(np.arange(3_000)),))
    statement = bound("SELECT COUNT(*) FILTER (WHERE sin(a.i) * cos(b.i) > tan(a.i + b.i)) AS n FROM a, a b", [header])
    with pytest.raises(PostprocessFailed):
        run(statement, {"a": many})


@pytest.mark.parametrize(
    "sql",
    ["SELECT k::INTEGER FROM a", "SELECT n * 9223372036854775807 FROM a", "SELECT MAKE_DATE(n, 40, 1) FROM a"],
)
def test_failures_on_rows_quote_none(sql: str):
    with pytest.raises(PostprocessFailed) as caught:
        ask(sql)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "'b'" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_an_instance_of_its_own(tmp_path: Path):
    ask("SELECT n FROM a")
    told = tmp_path / "told"
    child = os.fork()
    if child == 0:
        told.write_text(str(sorted(ask("SELECT n FROM a"))))
        os._exit(0)
    os.waitpid(child, 0)
    assert told.read_text() == "[(1,), (2,), (3,)]"


def test_dates_and_times_are_days_and_microseconds():
    (row,) = ask("SELECT d + 1 AS e, t + INTERVAL 1 SECOND AS u FROM a WHERE n = 2")
    assert row == (20_001, 10**15 + 10**6)
    days = (date(2024, 2, 29) - date(1970, 1, 1)).days
    rows = ask("SELECT DATE '2024-02-29' AS e, TIMESTAMP '2024-02-29 00:00:01' AS u FROM a LIMIT 1")
    assert rows == [(days, (days * 86_400 + 1) * 10**6)]
