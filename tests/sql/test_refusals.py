"""What is refused: the class, the words, the place; alike on any data, at no charge, and without a value of it.

The full texts are in refusals.golden; DPSQL_REGEN=1 writes them anew (read the difference before you keep it).
"""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlglot import exp

import dpsql
from dpsql import errors
from dpsql.core.sensitivity.row_contributions import analyse
from dpsql.core.unit import Neighbours
from dpsql.errors import (
    AmbiguousColumn,
    BudgetExceeded,
    DPSQLError,
    InternalError,
    InvalidArgument,
    InvalidParameter,
    InvalidPrivacyParameter,
    InvalidSchema,
    LedgerError,
    MissingBounds,
    QueryRefused,
    RawColumn,
    SQLSyntaxError,
    TypeMismatch,
    UnknownColumn,
    UnknownGroups,
    UnknownTable,
    UnsupportedSQL,
)
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.plan.expressions import Call
from dpsql.session.tables.public_tables import public_data, resolved
from dpsql.sql.bind.statement import _Binder
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.allow_list import check
from dpsql.sql.syntax.grammar import LISTS, RULES
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause
from dpsql.sql.syntax.parameters import params_of
from dpsql.sql.syntax.parse import MOST_NESTING, Statement, parse
from tests.sql.people import LARGEST_EPSILON

GOLDEN = Path(__file__).parent / "refusals.golden"
REGEN = os.environ.get("DPSQL_REGEN") == "1"

MARK = "xyzzy"
NUMBER = 8472
"""What the rows hold, and no message may."""
FACTS: dict[str, Any] = {
    "bounds": {"age": (17, 90), "year": (0, 5000), "hours": (0, 99), "hours per week": (0, 100)},
    "keys": {"s": ["a", "b"]},
}


def table(rows: int = 3) -> pd.DataFrame:
    """A column of every kind, all of whose cells are one of the two marks."""
    return pd.DataFrame(
        {
            "age": np.full(rows, NUMBER),
            "year": np.full(rows, NUMBER),
            "hours": np.full(rows, NUMBER),
            "r": np.full(rows, NUMBER + 0.5),
            "s": pd.Series([MARK] * rows, dtype="str"),
            "city": pd.Series([MARK] * rows, dtype="str"),
            "b": np.full(rows, fill_value=True),
            "d": pd.to_datetime(["2084-07-02"] * rows),
            "o": pd.to_timedelta([NUMBER] * rows, unit="D"),
            "hours per week": np.full(rows, NUMBER),
        }
    )


EMPTY = table().iloc[:0]


def units(rows: int = 3) -> dict[str, dpsql.Table]:
    """Tables of people with several rows, all of whose cells are one of the two marks, and public ones.

    A person's visits, and the tests made on a visit, of which no limit is declared; loose has no unit."""
    number, text = np.full(3, NUMBER), pd.Series([MARK] * 3, dtype="str")
    ab = pd.Series(["a", "b"], dtype="str")

    def private(columns: dict[str, Any], **said: Any) -> dpsql.Table:
        return dpsql.Table(pd.DataFrame(columns).iloc[:rows], **said)

    people = {"pid": number, "age": number, "s": text, "city": text}
    visits = {"vid": number, "pid": number, "cost": number, "r": number + 0.5, "s": text, "code": text,
        "d": pd.to_datetime(["2084-07-02"] * 3)}  # fmt: skip
    keys = {"s": ["a", "b"]}
    return {
        "people": private(people, unit="pid", unique=["pid"], max_rows=1, bounds={"age": (17, 90)}, keys=keys),
        "visits": private(
            visits, unit="pid -> people.pid", unique=["vid"], max_rows=4, bounds={"cost": (0, 99)}, keys=keys
        ),
        "tests": private({"vid": number, "score": number}, unit="vid -> visits.vid", bounds={"score": (0, 9)}),
        "loose": private({"pid": number, "x": number, "s": text}, bounds={"x": (0, 9)}),
        "hashes": private(
            {"pid": number, "h": number.astype("uint64"), "w": number.astype("uint64")}, unit="w", max_rows=1
        ),
        "codes": dpsql.Table(pd.DataFrame({"code": ab, "name": ab, "n": [1, 2]}), public=True, unique=["code"]),
        "labels": dpsql.Table(pd.DataFrame({"code": ab, "label": ab}), public=True, max_matches={"code": 2}),
        "days": dpsql.Table(pd.DataFrame({"day": range(400)}), public=True),
    }


# Class, the words under the carets (None: only the golden says), query.
REFUSED: list[tuple[type[DPSQLError], str | None, str]] = [
    (RawColumn, '*', 'SELECT * FROM t'),
    (RawColumn, 't.*', 'SELECT t.* FROM t'),
    (RawColumn, 't.*', 'SELECT COUNT(t.*) FROM t'),
    (RawColumn, 'age', 'SELECT age FROM t'),
    (RawColumn, 'age', 'SELECT age, COUNT(*) FROM t'),
    (RawColumn, 'age', 'SELECT COUNT(*), age + 1 FROM t GROUP BY s'),
    (RawColumn, 'age', 'SELECT COUNT(*) FROM t ORDER BY age'),
    (RawColumn, 'age', 'SELECT COUNT(*) FROM t HAVING age > 1'),
    (SQLSyntaxError, None, 'SELECT COUNT(*)'),
    (SQLSyntaxError, None, 'SELECT 1 FROM t'),
    (SQLSyntaxError, None, 'SELECT 1'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM t WHERE agee > 1'),
    (UnknownColumn, 'agee', 'SELECT SUM(agee) FROM t'),
    (UnknownColumn, 'zzz', 'SELECT SUM(zzz) FROM t'),
    (UnknownColumn, '"a"', 'SELECT COUNT(*) FROM t WHERE s = "a"'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM t WHERE u.age > 1'),
    (UnknownTable, 't', 'SELECT COUNT(*) FROM t x WHERE t.age > 1'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM t JOIN u ON t.a = u.a'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM t, u'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM t CROSS JOIN u'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM t LEFT JOIN u USING (a)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age IN (SELECT age FROM t)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)'),
    (UnsupportedSQL, None, 'SELECT (SELECT COUNT(*) FROM t) FROM t'),
    (UnsupportedSQL, None, 'WITH RECURSIVE x AS (SELECT 1) SELECT COUNT(*) FROM x'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) OVER () FROM t'),
    (UnsupportedSQL, None, 'SELECT RANK() OVER (ORDER BY age) FROM t'),
    (UnsupportedSQL, 'NTILE', 'SELECT NTILE(0) OVER (ORDER BY COUNT(*)) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(age) OVER w FROM t WINDOW w AS (ORDER BY age)'),
    (UnsupportedSQL, None, 'SELECT DISTINCT ON (s) s FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(DISTINCT age) FROM t'),
    (UnsupportedSQL, None, "SELECT COUNT(*) FROM t WHERE s GLOB 'a*'"),
    (InvalidParameter, None, 'SELECT COUNT(*) FROM t WHERE age > :low'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age > $1'),
    (InvalidParameter, '$low', 'SELECT COUNT(*) FROM t WHERE age > $low'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WHERE age > ?'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t TABLESAMPLE 10%'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t USING SAMPLE 10'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t TABLESAMPLE RESERVOIR(10)'),
    (UnsupportedSQL, None, 'SELECT s, COUNT(*) FROM t GROUP BY s QUALIFY COUNT(*) > 1'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t GROUP BY (s, b)'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FROM t GROUP BY COUNT(*)'),
    (SQLSyntaxError, 'n', 'SELECT COUNT(*) AS n FROM t GROUP BY n'),
    (SQLSyntaxError, '2', 'SELECT COUNT(*) FROM t GROUP BY 2'),
    (SQLSyntaxError, '0', 'SELECT COUNT(*) FROM t GROUP BY 0'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t GROUP BY -1'),
    (SQLSyntaxError, '1.5', 'SELECT COUNT(*) FROM t GROUP BY 1.5'),
    (SQLSyntaxError, None, "SELECT COUNT(*) FROM t GROUP BY 'a'"),
    (UnknownGroups, None, 'SELECT COUNT(*) FROM t GROUP BY d'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t GROUP BY'),
    (SQLSyntaxError, '2', 'SELECT COUNT(*) FROM t ORDER BY 2'),
    (SQLSyntaxError, '1.5', 'SELECT COUNT(*) FROM t ORDER BY 1.5'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t LIMIT -1'),
    (SQLSyntaxError, '1.5', 'SELECT COUNT(*) FROM t LIMIT 1.5'),
    (SQLSyntaxError, "'a'", "SELECT COUNT(*) FROM t LIMIT 'a'"),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t LIMIT ALL'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t LIMIT NULL'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t LIMIT 10 PERCENT'),
    (SQLSyntaxError, '99999999999999999999', 'SELECT COUNT(*) FROM t LIMIT 99999999999999999999'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t OFFSET -1'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t FOR UPDATE'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) INTO x FROM t'),
    (UnsupportedSQL, None, 'SELECT RANDOM() FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE RANDOM() > 0.5'),
    (UnsupportedSQL, None, 'SELECT SUM(FOO(age)) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(CLAM(age, 0, 1)) FROM t'),
    (SQLSyntaxError, 'CLAMP', 'SELECT SUM(CLAMP(age, 0)) FROM t'),
    (SQLSyntaxError, 'CLAMP', 'SELECT SUM(CLAMP()) FROM t'),
    (SQLSyntaxError, None, 'SELECT SUM(ABS(age, 1)) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(ROUND(age, 1, 2)) FROM t'),
    (SQLSyntaxError, None, 'SELECT SUM(NULLIF(age)) FROM t'),
    (SQLSyntaxError, None, 'SELECT SUM(LEAST()) FROM t'),
    (SQLSyntaxError, None, 'SELECT SUM() FROM t'),
    (SQLSyntaxError, None, 'SELECT SUM(age, r) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(age, r) FROM t'),
    (SQLSyntaxError, 'SUM', 'SELECT SUM(*) FROM t'),
    (SQLSyntaxError, 'AVG', 'SELECT AVG(*) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT SUM(COUNT(*)) FROM t'),
    (SQLSyntaxError, 'AVG', 'SELECT SUM(age + AVG(age)) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FROM t WHERE COUNT(*) > 1'),
    (SQLSyntaxError, 'SUM', 'SELECT COUNT(*) FROM t WHERE SUM(age) > 1 AND b'),
    (TypeMismatch, 's', 'SELECT SUM(s) FROM t'),
    (TypeMismatch, 'd', 'SELECT AVG(d) FROM t'),
    (MissingBounds, 'r', 'SELECT SUM(r) FROM t'),
    (MissingBounds, 'r', 'SELECT AVG(r) FROM t WHERE r > 0'),
    (MissingBounds, '1.0 / (r - 50', 'SELECT SUM(1.0 / (r - 50)) FROM t'),
    (MissingBounds, 'r / 0.5 * 1e300 * 1e300', 'SELECT SUM(r / 0.5 * 1e300 * 1e300) FROM t'),
    (MissingBounds, '"hours per week" * r', 'SELECT SUM("hours per week" * r) FROM t'),
    (TypeMismatch, "age = 'x'", "SELECT COUNT(*) FROM t WHERE age = 'x'"),
    (TypeMismatch, 's > 5', 'SELECT COUNT(*) FROM t WHERE s > 5'),
    (TypeMismatch, 'b + 1', 'SELECT COUNT(*) FROM t WHERE b + 1 > 0'),
    (TypeMismatch, 'age', 'SELECT COUNT(*) FROM t WHERE NOT age'),
    (TypeMismatch, 'age AND b', 'SELECT COUNT(*) FROM t WHERE age AND b'),
    (TypeMismatch, "s IN ('a', 1)", "SELECT COUNT(*) FROM t WHERE s IN ('a', 1)"),
    (SQLSyntaxError, 'age IS 5', 'SELECT COUNT(*) FROM t WHERE age IS 5'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE [1] = age'),
    (UnsupportedSQL, None, "SELECT COUNT(*) FROM t WHERE {'a': 1} = age"),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age BETWEEN SYMMETRIC 1 AND 2'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age = ALL(1)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE d > CURRENT_DATE'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE d > INTERVAL 1 DAY'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WHERE age > 0x1F'),
    (SQLSyntaxError, '1e999', 'SELECT COUNT(*) FROM t WHERE age > 1e999'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age @> 5'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age & 1 = 1'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE ~age = 1'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t WHERE age << 1 = 1'),
    (UnsupportedSQL, None, 'SELECT COUNT(* EXCLUDE age) FROM t'),
    (UnsupportedSQL, None, 'SELECT COLUMNS(*) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(age ORDER BY r) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(age) WITHIN GROUP (ORDER BY age) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(age) IGNORE NULLS FROM t'),
    (UnsupportedSQL, None, 'SELECT UNNEST([1,2]) FROM t'),
    (RawColumn, None, 'FROM t'),
    (UnsupportedSQL, 'PIVOT', "SELECT * FROM t PIVOT (COUNT(*) FOR s IN ('a'))"),
    (UnsupportedSQL, None, "SELECT COUNT(*) FROM read_csv('x.csv')"),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, None, 'INSERT INTO t VALUES (1)'),
    (UnsupportedSQL, None, 'DROP TABLE t'),
    (UnsupportedSQL, None, 'UPDATE t SET age = 1'),
    (UnsupportedSQL, None, 'DELETE FROM t'),
    (UnsupportedSQL, None, 'CREATE TABLE x AS SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, None, "ATTACH 'x'"),
    (UnsupportedSQL, None, 'PRAGMA database_list'),
    (UnsupportedSQL, None, 'SET threads = 1'),
    (UnsupportedSQL, None, "COPY t TO 'x'"),
    (UnsupportedSQL, None, 'DESCRIBE t'),
    (UnsupportedSQL, None, 'SHOW TABLES'),
    (UnsupportedSQL, None, 'EXPLAIN SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, None, 'VALUES (1)'),
    (UnsupportedSQL, None, 'SUMMARIZE t'),
    (SQLSyntaxError, 'SELEC', 'SELEC COUNT(*) FROM t'),
    (SQLSyntaxError, 'FROM', 'SELECT COUNT(* FROM t'),
    (SQLSyntaxError, 'FROM', 'SELECT COUNT(*) FROM'),
    (SQLSyntaxError, 'WHERE', 'SELECT COUNT(*) FROM t WHERE'),
    (SQLSyntaxError, '>', 'SELECT COUNT(*) FROM t WHERE age >'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WHERE (age > 1'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WHERE age > 1)'),
    (SQLSyntaxError, 's', 'SELECT COUNT(*) FROM t GROUP s'),
    (SQLSyntaxError, 'age', 'SELECT COUNT(*) FROM t WHERE age > 1 age'),
    (SQLSyntaxError, None, "SELECT COUNT(*) FROM t WHERE s = 'a"),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WHERE "age > 1'),
    (SQLSyntaxError, None, 'SELECT FROM t'),
    (SQLSyntaxError, None, 'SELECT , FROM t'),
    (UnknownColumn, '😀', 'SELECT COUNT(*) FROM t WHERE 😀'),
    (UnknownColumn, '😀', 'SELECT 😀 FROM t'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM u'),
    (UnknownTable, 'tt', 'SELECT COUNT(*) FROM tt'),
    (UnknownTable, 'people', 'SELECT COUNT(*) FROM people'),
    (UnknownTable, '""', 'SELECT COUNT(*) FROM ""'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM t GROUP BY agee'),
    (UnknownColumn, 'h', 'SELECT s AS g, COUNT(*) FROM t GROUP BY g, h'),
    (UnknownColumn, 'm', 'SELECT COUNT(*) AS n FROM t ORDER BY m'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM t HAVING agee > 1'),
    (UnknownGroups, 'city', 'SELECT city, COUNT(*) FROM t GROUP BY city'),
    (UnknownGroups, 'city', 'SELECT s, city, COUNT(*) FROM t GROUP BY s, city'),
    (UnknownGroups, 'r', 'SELECT r, COUNT(*) FROM t GROUP BY r'),
    (UnknownGroups, 'age', 'SELECT age, year, hours, COUNT(*) FROM t GROUP BY age, year, hours'),
    (UnknownColumn, 'x', 'SELECT SUM(x) FROM t'),
    (UnsupportedSQL, None, 'SELECT SUM(t.age.b) FROM t'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*)\nFROM t\nWHERE agee > 1'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*)\r\nFROM t\r\nWHERE agee > 1'),
    (UnknownColumn, 'agee', 'SELECT\tCOUNT(*),\tagee FROM t'),
    (UnknownColumn, 'agee', 'EXPLAIN PRIVACY\nSELECT agee\nFROM t'),
    (UnknownColumn, 'agee', "SELECT COUNT(*) FROM t WHERE 'é😀' = s AND agee > 1"),
    (SQLSyntaxError, None, ''),
    (SQLSyntaxError, None, ' \n '),
    (SQLSyntaxError, None, '-- only a comment'),
    (SQLSyntaxError, None, '/* so */'),
    (SQLSyntaxError, None, ';;'),
    (SQLSyntaxError, None, '\x00'),
    (SQLSyntaxError, 'HAVING', 'SELECT COUNT(*) FROM t WHERE HAVING'),
    (SQLSyntaxError, 'ORDER BY', 'SELECT COUNT(*) FROM t ORDER BY'),
    (SQLSyntaxError, 'LIMIT', 'SELECT COUNT(*) FROM t LIMIT'),
    (SQLSyntaxError, 'NOT', 'SELECT COUNT(*) FROM t WHERE age NOT'),
    (SQLSyntaxError, None, 'EXPLAIN PRIVACY'),
    (UnsupportedSQL, None, 'EXPLAIN PRIVACY DROP TABLE t'),
    (UnsupportedSQL, None, 'SELECT SUM(age) FROM t WHERE age = (1, 2)'),
    # CASE and IF.
    (TypeMismatch, 'age THEN 1', 'SELECT SUM(CASE WHEN age THEN 1 END) FROM t'),
    (TypeMismatch, "b THEN 1 ELSE 'a'", "SELECT SUM(CASE WHEN b THEN 1 ELSE 'a' END) FROM t"),
    (TypeMismatch, '1 THEN 1', 'SELECT SUM(CASE s WHEN 1 THEN 1 END) FROM t'),
    (TypeMismatch, "'a' THEN 1", "SELECT SUM(CASE age WHEN 'a' THEN 1 END) FROM t"),
    (SQLSyntaxError, ')', 'SELECT SUM(CASE ELSE 1 END) FROM t'),
    (SQLSyntaxError, 'END', 'SELECT SUM(CASE END) FROM t'),
    (SQLSyntaxError, 'END', 'SELECT SUM(CASE WHEN b THEN END) FROM t'),
    (SQLSyntaxError, 'CASE', 'SELECT SUM(CASE WHEN b 1 END) FROM t'),
    (SQLSyntaxError, '1', 'SELECT SUM(CASE WHEN b THEN 1) FROM t'),
    (TypeMismatch, 'b THEN s', 'SELECT SUM(CASE WHEN b THEN s END) FROM t'),
    (MissingBounds, 'b THEN r', 'SELECT SUM(CASE WHEN b THEN r END) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT SUM(CASE WHEN COUNT(*) > 1 THEN 1 END) FROM t'),
    (RawColumn, 'b', 'SELECT CASE WHEN b THEN COUNT(*) END FROM t'),
    (RawColumn, 'age', 'SELECT CASE WHEN COUNT(*) > 1 THEN age END FROM t'),
    (SQLSyntaxError, '2', 'SELECT SUM(CASE WHEN b THEN 1 ELSE 2 ELSE 3 END) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(IF(b)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(IF(b, 1, 2, 3)) FROM t'),
    (TypeMismatch, 'age, 1, 2', 'SELECT SUM(IF(age, 1, 2)) FROM t'),
    (TypeMismatch, 'IIF', "SELECT SUM(IIF(b, 1, 'a')) FROM t"),
    (TypeMismatch, 'COALESCE', "SELECT COUNT(COALESCE(age, 'a')) FROM t"),
    (SQLSyntaxError, ')', 'SELECT COUNT(COALESCE()) FROM t'),
    (TypeMismatch, 'b THEN d ELSE age', 'SELECT COUNT(CASE WHEN b THEN d ELSE age END) FROM t'),
    (TypeMismatch, 'b THEN o', 'SELECT COUNT(CASE WHEN b THEN o END) FROM t'),
    # CAST.
    (UnsupportedSQL, 'age', 'SELECT COUNT(CAST(age AS BLOB)) FROM t'),
    (UnsupportedSQL, 'age', 'SELECT COUNT(CAST(age AS INTERVAL)) FROM t'),
    (UnsupportedSQL, 'age', 'SELECT COUNT(CAST(age AS UUID)) FROM t'),
    (UnsupportedSQL, 's', 'SELECT COUNT(CAST(s AS JSON)) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(CAST(age AS FOO)) FROM t'),
    (UnsupportedSQL, 'age', 'SELECT COUNT(CAST(age AS DATE)) FROM t'),
    (UnsupportedSQL, 'd', 'SELECT COUNT(CAST(d AS INTEGER)) FROM t'),
    (UnsupportedSQL, 'd', 'SELECT COUNT(CAST(d AS TIME)) FROM t'),
    (UnsupportedSQL, 'd', 'SELECT COUNT(CAST(d AS TIMESTAMPTZ)) FROM t'),
    (UnsupportedSQL, 'o', 'SELECT COUNT(CAST(o AS TEXT)) FROM t'),
    (SQLSyntaxError, 'r AS DECIMAL(2, 3', 'SELECT COUNT(CAST(r AS DECIMAL(2, 3))) FROM t'),
    (SQLSyntaxError, 'r AS DECIMAL(39, 3', 'SELECT COUNT(CAST(r AS DECIMAL(39, 3))) FROM t'),
    (SQLSyntaxError, 'DECIMAL', 'SELECT COUNT(CAST(r AS DECIMAL(-1))) FROM t'),
    (TypeMismatch, 'r AS DECIMAL(0', 'SELECT COUNT(CAST(r AS DECIMAL(0))) FROM t'),
    (SQLSyntaxError, 'r AS DECIMAL(5, 2, 1', 'SELECT COUNT(CAST(r AS DECIMAL(5, 2, 1))) FROM t'),
    (SQLSyntaxError, 'r AS DECIMAL(age, 2', 'SELECT COUNT(CAST(r AS DECIMAL(age, 2))) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(CAST(age AS INTEGER[])) FROM t'),
    (UnsupportedSQL, "age AS ENUM('a'", "SELECT COUNT(CAST(age AS ENUM('a'))) FROM t"),
    (UnsupportedSQL, 'a', 'SELECT COUNT(CAST(age AS STRUCT(a INTEGER))) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(CAST(age)) FROM t'),
    (SQLSyntaxError, 'INTEGER', 'SELECT COUNT(CAST(age INTEGER)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(CAST(age AS)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(age::) FROM t'),
    (UnsupportedSQL, 'FORMAT', "SELECT COUNT(CAST(d AS TEXT FORMAT 'YYYY')) FROM t"),
    (MissingBounds, 's', 'SELECT SUM(CAST(s AS DOUBLE)) FROM t'),
    (MissingBounds, 's', 'SELECT SUM(CAST(s AS INTEGER)) FROM t'),
    (MissingBounds, 's', 'SELECT AVG(TRY_CAST(s AS TINYINT)) FROM t'),
    (MissingBounds, 'LENGTH', 'SELECT SUM(LENGTH(city)) FROM t'),
    (MissingBounds, 'LENGTH(city) + 1', 'SELECT SUM(LENGTH(city) + 1) FROM t WHERE LENGTH(city) > 3'),
    (MissingBounds, 'r', 'SELECT SUM(CAST(r AS INTEGER)) FROM t'),
    (TypeMismatch, "'2020-13-01'", "SELECT COUNT(DATE '2020-13-01') FROM t"),
    (TypeMismatch, "'soon'", "SELECT COUNT(*) FROM t WHERE d > DATE 'soon'"),
    (TypeMismatch, "'2020-01-01 25:00:00'", "SELECT COUNT(*) FROM t WHERE d > TIMESTAMP '2020-01-01 25:00:00'"),
    (UnsupportedSQL, "'2020-01-01 00:00:00+02'",
     "SELECT COUNT(*) FROM t WHERE d > TIMESTAMPTZ '2020-01-01 00:00:00+02'"),
    (UnsupportedSQL, "'10:00:00'", "SELECT COUNT(*) FROM t WHERE d > TIME '10:00:00'"),
    (TypeMismatch, "d > '2020'", "SELECT COUNT(*) FROM t WHERE d > '2020'"),
    (TypeMismatch, "d > 'x'", "SELECT COUNT(*) FROM t WHERE d > 'x'"),
    (TypeMismatch, 'd > 5', 'SELECT COUNT(*) FROM t WHERE d > 5'),
    (TypeMismatch, 'd = s', 'SELECT COUNT(*) FROM t WHERE d = s'),
    (TypeMismatch, "d IN (DATE '2020-01-01', 5)", "SELECT COUNT(*) FROM t WHERE d IN (DATE '2020-01-01', 5)"),
    (TypeMismatch, "d BETWEEN '2020-01-01' AND 'later'",
     "SELECT COUNT(*) FROM t WHERE d BETWEEN '2020-01-01' AND 'later'"),
    # Patterns.
    (TypeMismatch, "age LIKE '4%'", "SELECT COUNT(*) FROM t WHERE age LIKE '4%'"),
    (TypeMismatch, 's LIKE 5', 'SELECT COUNT(*) FROM t WHERE s LIKE 5'),
    (TypeMismatch, "d LIKE '2020%'", "SELECT COUNT(*) FROM t WHERE d LIKE '2020%'"),
    (SQLSyntaxError, '5', "SELECT COUNT(*) FROM t WHERE s LIKE 'a%' ESCAPE 5"),
    (SQLSyntaxError, 'ESCAPE', "SELECT COUNT(*) FROM t WHERE s = 'a' ESCAPE '!'"),
    (UnsupportedSQL, "'a', 'b'", "SELECT COUNT(*) FROM t WHERE s LIKE ANY ('a', 'b')"),
    (SQLSyntaxError, 'LIKE', 'SELECT COUNT(*) FROM t WHERE s LIKE'),
    (UnsupportedSQL, 's', "SELECT COUNT(*) FROM t WHERE s COLLATE NOCASE = 'a'"),
    # Functions of text.
    (TypeMismatch, 'UPPER', 'SELECT COUNT(UPPER(age)) FROM t'),
    (TypeMismatch, "s, 'a'", "SELECT COUNT(SUBSTRING(s, 'a')) FROM t"),
    (SQLSyntaxError, 's', 'SELECT COUNT(SUBSTRING(s)) FROM t'),
    (TypeMismatch, 'LENGTH', 'SELECT COUNT(LENGTH(age)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(CONCAT()) FROM t'),
    (TypeMismatch, 'REPEAT', "SELECT COUNT(REPEAT(s, 'a')) FROM t"),
    (SQLSyntaxError, 'LPAD', 'SELECT COUNT(LPAD(s, 5)) FROM t'),
    (TypeMismatch, 'age', 'SELECT COUNT(TRIM(age)) FROM t'),
    (SQLSyntaxError, 'FROM', 'SELECT COUNT(TRIM(BOTH FROM s FROM s)) FROM t'),
    (UnsupportedSQL, 'FORMAT', "SELECT COUNT(FORMAT('%d', age)) FROM t"),
    (UnsupportedSQL, 'MD5', 'SELECT COUNT(MD5(s)) FROM t'),
    (UnsupportedSQL, 's', 'SELECT COUNT(s[1]) FROM t'),
    (UnsupportedSQL, 's[1:2', 'SELECT COUNT(s[1:2]) FROM t'),
    (UnsupportedSQL, 'LEVENSHTEIN', "SELECT COUNT(LEVENSHTEIN(s, 'a')) FROM t"),
    # Times.
    (SQLSyntaxError, 'd', 'SELECT COUNT(d + INTERVAL 1 FORTNIGHT) FROM t'),
    (SQLSyntaxError, "d + INTERVAL '1 day 2 hours'", "SELECT COUNT(d + INTERVAL '1 day 2 hours') FROM t"),
    (SQLSyntaxError, "'1.5'", "SELECT COUNT(d + INTERVAL '1.5' DAY) FROM t"),
    (SQLSyntaxError, None, 'SELECT COUNT(d + INTERVAL 1.5 DAY) FROM t'),
    (SQLSyntaxError, "'a'", "SELECT COUNT(d + INTERVAL 'a' DAY) FROM t"),
    (SQLSyntaxError, 'd', 'SELECT COUNT(d + INTERVAL 1) FROM t'),
    (UnknownColumn, 'INTERVAL', 'SELECT COUNT(d + INTERVAL) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(d * INTERVAL 1 DAY) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(INTERVAL 1 DAY + INTERVAL 1 DAY) FROM t'),
    (UnsupportedSQL, None, 'SELECT COUNT(INTERVAL 1 DAY - d) FROM t'),
    (TypeMismatch, 'age', 'SELECT COUNT(age + INTERVAL 1 DAY) FROM t'),
    (TypeMismatch, 's', 'SELECT COUNT(s + INTERVAL 1 DAY) FROM t'),
    (TypeMismatch, "'x'", "SELECT COUNT('x' + INTERVAL 1 DAY) FROM t"),
    (UnsupportedSQL, None, 'SELECT COUNT(INTERVAL 1 DAY) FROM t'),
    (TypeMismatch, 'd + INTERVAL s', 'SELECT COUNT(d + INTERVAL s DAY) FROM t'),
    (TypeMismatch, 'd + INTERVAL (s', 'SELECT COUNT(d + INTERVAL (s) DAY) FROM t'),
    (UnsupportedSQL, None, "SELECT COUNT(d + INTERVAL '1-2' YEAR TO MONTH) FROM t"),
    (SQLSyntaxError, None, 'SELECT COUNT(d + INTERVAL 99999999999999999999 DAY) FROM t'),
    (TypeMismatch, 'd + 1', 'SELECT COUNT(d + 1) FROM t'),
    (TypeMismatch, 'd + d', 'SELECT COUNT(d + d) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(DATE_ADD(d)) FROM t'),
    (SQLSyntaxError, 'DATE_SUB', "SELECT COUNT(DATE_SUB(d, d)) FROM t"),
    (SQLSyntaxError, 'd', 'SELECT SUM(EXTRACT(FORTNIGHT FROM d)) FROM t'),
    (TypeMismatch, 'age', 'SELECT SUM(EXTRACT(YEAR FROM age)) FROM t'),
    (TypeMismatch, 's', 'SELECT SUM(EXTRACT(YEAR FROM s)) FROM t'),
    (SQLSyntaxError, 'YEAR', 'SELECT SUM(EXTRACT(YEAR d)) FROM t'),
    (SQLSyntaxError, 'FROM', 'SELECT SUM(EXTRACT(FROM d)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(EXTRACT(YEAR FROM)) FROM t'),
    (TypeMismatch, 'YEAR', 'SELECT SUM(YEAR(age)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(YEAR()) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(YEAR(d, d)) FROM t'),
    (SQLSyntaxError, "'fortnight'", "SELECT SUM(DATE_PART('fortnight', d)) FROM t"),
    (SQLSyntaxError, 'DATE_PART', "SELECT SUM(DATE_PART('year')) FROM t"),
    (SQLSyntaxError, 's', 'SELECT SUM(DATE_PART(s, d)) FROM t'),
    (SQLSyntaxError, '5', 'SELECT SUM(DATE_PART(5, d)) FROM t'),
    (SQLSyntaxError, 'DATE_TRUNC', "SELECT COUNT(DATE_TRUNC('fortnight', d)) FROM t"),
    (SQLSyntaxError, 's', 'SELECT COUNT(DATE_TRUNC(s, d)) FROM t'),
    (TypeMismatch, 'DATE_TRUNC', "SELECT COUNT(DATE_TRUNC('month', age)) FROM t"),
    (SQLSyntaxError, ')', "SELECT COUNT(DATE_TRUNC('month')) FROM t"),
    (SQLSyntaxError, 'DATE_DIFF', "SELECT SUM(DATE_DIFF('fortnight', d, d)) FROM t"),
    (TypeMismatch, 'DATE_DIFF', "SELECT SUM(DATE_DIFF('day', d, age)) FROM t"),
    (SQLSyntaxError, ')', "SELECT SUM(DATE_DIFF('day', d)) FROM t"),
    (SQLSyntaxError, 's', 'SELECT SUM(DATE_DIFF(s, d, d)) FROM t'),
    (SQLSyntaxError, 'MAKE_DATE', 'SELECT COUNT(MAKE_DATE(2020, 1)) FROM t'),
    (TypeMismatch, 'MAKE_DATE', "SELECT COUNT(MAKE_DATE('2020', 1, 1)) FROM t"),
    (UnsupportedSQL, "d AT TIME ZONE 'UTC'", "SELECT COUNT(d AT TIME ZONE 'UTC') FROM t"),
    (UnsupportedSQL, 'NOW', 'SELECT COUNT(*) FROM t WHERE d > NOW()'),
    (UnsupportedSQL, 'CURRENT_TIMESTAMP', 'SELECT COUNT(*) FROM t WHERE d > CURRENT_TIMESTAMP'),
    (UnsupportedSQL, 'TODAY', 'SELECT COUNT(*) FROM t WHERE d > TODAY()'),
    (UnsupportedSQL, 'AGE', 'SELECT SUM(AGE(d)) FROM t'),
    (UnsupportedSQL, 'AGE', 'SELECT SUM(YEAR(AGE(d))) FROM t'),
    (UnsupportedSQL, 'AGE', "SELECT COUNT(CAST(AGE(d, d) AS TEXT)) FROM t"),
    (UnsupportedSQL, 'AGE', "SELECT SUM(EXTRACT(epoch FROM AGE(d, d))) FROM t"),
    (SQLSyntaxError, 'DATESUB', "SELECT COUNT(DATESUB('fortnight', d, d)) FROM t"),
    (TypeMismatch, 'd', 'SELECT SUM(d) FROM t'),
    (TypeMismatch, 'o', 'SELECT SUM(o) FROM t'),
    (TypeMismatch, 'o = o', 'SELECT COUNT(*) FROM t WHERE o = o'),
    (UnsupportedSQL, 'o', 'SELECT o, COUNT(*) FROM t GROUP BY o'),
    (TypeMismatch, 'o', 'SELECT COUNT(o + INTERVAL 1 DAY) FROM t'),
    # GROUP BY, HAVING, ORDER BY.
    (SQLSyntaxError, '1 + 1', 'SELECT COUNT(*) FROM t GROUP BY 1 + 1'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t GROUP BY NULL'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t GROUP BY TRUE'),
    (SQLSyntaxError, 'five', 'SELECT 5 AS five, COUNT(*) FROM t GROUP BY five'),
    (SQLSyntaxError, '1', 'SELECT 5, COUNT(*) FROM t GROUP BY 1'),
    (SQLSyntaxError, '2', 'SELECT s, COUNT(*) FROM t GROUP BY 2'),
    (SQLSyntaxError, '3', 'SELECT s, COUNT(*) FROM t GROUP BY 3'),
    (SQLSyntaxError, 'SUM', 'SELECT COUNT(*) FROM t GROUP BY SUM(age)'),
    (SQLSyntaxError, 'age + COUNT(*', 'SELECT COUNT(*) FROM t GROUP BY age + COUNT(*)'),
    (SQLSyntaxError, 'n', 'SELECT COUNT(*) + 1 AS n FROM t GROUP BY n'),
    (UnknownGroups, 'r * 2', 'SELECT r * 2, COUNT(*) FROM t GROUP BY r * 2'),
    (UnknownGroups, 'UPPER', 'SELECT UPPER(city), COUNT(*) FROM t GROUP BY UPPER(city)'),
    (UnknownGroups, 'r', 'SELECT FLOOR(r), COUNT(*) FROM t GROUP BY FLOOR(r)'),
    (UnknownGroups, 'd', 'SELECT d, COUNT(*) FROM t GROUP BY d'),
    (UnknownGroups, 'age * 1000', 'SELECT age * 1000, age + year, COUNT(*) FROM t GROUP BY age * 1000, age + year'),
    (RawColumn, 'age', 'SELECT age, COUNT(*) FROM t GROUP BY age + 1'),
    (RawColumn, 'age', 'SELECT age + 2, COUNT(*) FROM t GROUP BY age + 1'),
    (RawColumn, 's', 'SELECT s FROM t GROUP BY b'),
    (RawColumn, 'age', 'SELECT s, COUNT(*) FROM t GROUP BY s HAVING age > 1'),
    (TypeMismatch, 's', 'SELECT s, COUNT(*) FROM t GROUP BY s HAVING s'),
    (RawColumn, 'age', 'SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY age'),
    (SQLSyntaxError, "'a'", "SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY 'a'"),
    (SQLSyntaxError, '1 + 1', 'SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY 1 + 1'),
    (UnsupportedSQL, 'ROLLUP', 'SELECT COUNT(*) FROM t GROUP BY s WITH ROLLUP'),
    (UnsupportedSQL, 'CUBE', 'SELECT COUNT(*) FROM t GROUP BY s WITH CUBE'),
    # Statistics.
    (TypeMismatch, 's', 'SELECT VAR_POP(s) FROM t'),
    (TypeMismatch, 'd', 'SELECT STDDEV(d) FROM t'),
    (TypeMismatch, 's', 'SELECT CORR(age, s) FROM t'),
    (TypeMismatch, 'd', 'SELECT REGR_SLOPE(d, age) FROM t'),
    (TypeMismatch, 'city', 'SELECT MEDIAN(city) FROM t'),
    (TypeMismatch, 'o', 'SELECT QUANTILE(o, 0.5) FROM t'),
    (TypeMismatch, 'city', 'SELECT MIN(city) FROM t'),
    (TypeMismatch, 'b', 'SELECT MAX(b) FROM t'),
    (TypeMismatch, 'o', 'SELECT COUNT(DISTINCT o) FROM t'),
    (TypeMismatch, 'o', 'SELECT MODE(o) FROM t'),
    (UnknownGroups, 'city', 'SELECT MODE(city) FROM t'),
    (UnknownGroups, 'city', 'SELECT MODE() WITHIN GROUP (ORDER BY city) FROM t'),
    (UnknownGroups, 'r', 'SELECT MODE(r) FROM t'),
    (UnknownGroups, 'UPPER', 'SELECT MODE(UPPER(city)) FROM t'),
    (UnknownGroups, "s || city", 'SELECT MODE(s || city) FROM t'),
    (UnknownGroups, 'city', 'SELECT APPROX_TOP_K(city, 3) FROM t'),
    (UnknownGroups, 'NULL', 'SELECT MODE(NULL) FROM t'),
    (MissingBounds, 'r', 'SELECT VAR_SAMP(r) FROM t'),
    (MissingBounds, 'r', 'SELECT MEDIAN(r) FROM t'),
    (MissingBounds, 'r', 'SELECT MAX(r) FROM t'),
    (MissingBounds, 'r', 'SELECT QUANTILE_DISC(r, 0.9) FROM t'),
    (MissingBounds, 'r', 'SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY r DESC) FROM t'),
    (MissingBounds, 'r, age', 'SELECT CORR(r, age) FROM t'),
    (MissingBounds, 'age, r', 'SELECT CORR(age, r) FROM t'),
    (MissingBounds, 'age, r', 'SELECT COVAR_POP(age, r) FROM t WHERE r > 0'),
    (MissingBounds, 'hours, age * r', 'SELECT REGR_R2(hours, age * r) FROM t'),
    (SQLSyntaxError, '1.5', 'SELECT QUANTILE(age, 1.5) FROM t'),
    (SQLSyntaxError, '0.5', 'SELECT QUANTILE(age, -0.5) FROM t'),
    (SQLSyntaxError, "'half'", "SELECT QUANTILE_CONT(age, 'half') FROM t"),
    (SQLSyntaxError, 'hours', 'SELECT QUANTILE(age, hours) FROM t'),
    (SQLSyntaxError, 'NULL', 'SELECT QUANTILE(age, NULL) FROM t'),
    (SQLSyntaxError, 'TRUE', 'SELECT QUANTILE_DISC(age, TRUE) FROM t'),
    (SQLSyntaxError, '50', 'SELECT PERCENTILE_CONT(50) WITHIN GROUP (ORDER BY age) FROM t'),
    (SQLSyntaxError, 'QUANTILE', 'SELECT QUANTILE(age) FROM t'),
    (SQLSyntaxError, 'PERCENTILE_CONT', 'SELECT PERCENTILE_CONT(age) FROM t'),
    (SQLSyntaxError, 'QUANTILE', 'SELECT QUANTILE(age, [0.25, 5]) FROM t'),
    (SQLSyntaxError, '0.7', 'SELECT QUANTILE_CONT(age, 0.5, 0.7) FROM t'),
    (UnsupportedSQL, '0.5', 'SELECT QUANTILE_CONT(age, 0.5 ORDER BY age) FROM t'),
    (UnsupportedSQL, 'QUANTILE(0.5) WITHIN GROUP (ORDER BY age',
     'SELECT QUANTILE(0.5) WITHIN GROUP (ORDER BY age) FROM t'),
    (UnsupportedSQL, 'MEDIAN(age) WITHIN GROUP (ORDER BY age', 'SELECT MEDIAN(age) WITHIN GROUP (ORDER BY age) FROM t'),
    (UnsupportedSQL, 'COUNT(*) WITHIN GROUP (ORDER BY age', 'SELECT COUNT(*) WITHIN GROUP (ORDER BY age) FROM t'),
    (SQLSyntaxError, None, 'SELECT PERCENTILE_CONT(age, 0.5) WITHIN GROUP (ORDER BY age) FROM t'),
    (SQLSyntaxError, None, 'SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, hours) FROM t'),
    (SQLSyntaxError, None, 'SELECT MODE(s) WITHIN GROUP (ORDER BY s) FROM t'),
    (SQLSyntaxError, 'CORR', 'SELECT CORR(age) FROM t'),
    (SQLSyntaxError, 'REGR_SLOPE', 'SELECT REGR_SLOPE(age) FROM t'),
    (SQLSyntaxError, 'COVAR_SAMP', 'SELECT COVAR_SAMP() FROM t'),
    (UnsupportedSQL, '1', 'SELECT CORR(age, hours, 1) FROM t'),
    (SQLSyntaxError, 'year', 'SELECT REGR_R2(age, hours, year) FROM t'),
    (UnsupportedSQL, '1', 'SELECT MODE(s, 1) FROM t'),
    (UnsupportedSQL, '2', 'SELECT MIN(age, 2) FROM t'),
    (UnsupportedSQL, '2', 'SELECT MAX(age, 2) FROM t'),
    (UnsupportedSQL, '1', 'SELECT APPROX_COUNT_DISTINCT(age, 1) FROM t'),
    (SQLSyntaxError, 'MODE', 'SELECT MODE() FROM t'),
    (SQLSyntaxError, 'MEDIAN', 'SELECT MEDIAN(*) FROM t'),
    (SQLSyntaxError, 'CORR', 'SELECT CORR(*, age) FROM t'),
    (UnsupportedSQL, '*', 'SELECT CORR(age, *) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(DISTINCT *) FROM t'),
    (UnsupportedSQL, 'MEDIAN', 'SELECT MEDIAN(DISTINCT age) FROM t'),
    (UnsupportedSQL, 'VARIANCE', 'SELECT VARIANCE(DISTINCT age) FROM t'),
    (UnsupportedSQL, 'CORR', 'SELECT CORR(DISTINCT age, hours) FROM t'),
    (UnsupportedSQL, 'QUANTILE_CONT', 'SELECT QUANTILE_CONT(DISTINCT age, 0.5) FROM t'),
    (UnsupportedSQL, 'MODE', 'SELECT MODE(DISTINCT s) FROM t'),
    (UnsupportedSQL, 'MIN', 'SELECT MIN(DISTINCT age) FROM t'),
    (SQLSyntaxError, '0', 'SELECT APPROX_TOP_K(s, 0) FROM t'),
    (SQLSyntaxError, '101', 'SELECT APPROX_TOP_K(s, 101) FROM t'),
    (SQLSyntaxError, '1.5', 'SELECT APPROX_TOP_K(s, 1.5) FROM t'),
    (SQLSyntaxError, 'age', 'SELECT APPROX_TOP_K(s, age) FROM t'),
    (UnsupportedSQL, '3', 'SELECT APPROX_TOP_K(s, 2, 3) FROM t'),
    (SQLSyntaxError, 'MEDIAN', 'SELECT MEDIAN(MEDIAN(age)) FROM t'),
    (SQLSyntaxError, 'MEDIAN', 'SELECT COUNT(*) FROM t WHERE MEDIAN(age) > 1'),
    (SQLSyntaxError, 'MODE', 'SELECT COUNT(*) FROM t GROUP BY MODE(s)'),
    (TypeMismatch, 'MODE(s) + 1', 'SELECT MODE(s) + 1 FROM t'),
    (UnsupportedSQL, None, 'SELECT MEDIAN(age) OVER () FROM t'),
    (UnsupportedSQL, '(0, 1)', 'SELECT CORR(age, hours, contribution_bounds_per_row => (0, 1)) FROM t'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(DISTINCT age, contribution_bounds_per_row => (0, 1)) FROM t'),
    (TypeMismatch, 's', 'SELECT MODE(s, contribution_bounds_per_row => (0, 1)) FROM t'),
    (TypeMismatch, 'd', 'SELECT MAX(d, contribution_bounds_per_row => (0, 1)) FROM t'),
    (UnsupportedSQL, "'JSON'", "SELECT MEDIAN(age, report_format => 'JSON') FROM t"),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT DP_INTERVAL_LOW(MEDIAN(age)) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_HIGH', 'SELECT MODE(b) AS m, DP_INTERVAL_HIGH(m) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT DP_INTERVAL_LOW(COUNT(*) + MAX(age)) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT DP_INTERVAL_LOW(REGR_R2(age, hours)) FROM t'),
    (UnsupportedSQL, "'JSON'", "SELECT REGR_INTERCEPT(age, hours, report_format => 'JSON') FROM t"),
    (UnsupportedSQL, 'age', 'SELECT b, MEDIAN(age) FROM t GROUP BY ROLLUP (b)'),
    (UnknownGroups, 'city', 'SELECT city, COUNT(*) FROM t GROUP BY CUBE (city)'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM t GROUP BY ROLLUP (agee)'),
    (InvalidPrivacyParameter, None, 'SELECT MEDIAN(age, epsilon => 1), MAX(age) FROM t'),
    # WITHIN.
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM t WITHIN 5 CONFIDENCE'),
    (SQLSyntaxError, "'a'", "SELECT COUNT(*) FROM t WITHIN 'a'"),
    (SQLSyntaxError, 'WITHIN', 'SELECT COUNT(*) FROM t WITHIN 5 CONFIDENCE 100'),
    (SQLSyntaxError, 'WITHIN', 'SELECT COUNT(*) FROM t WITHIN 0 CONFIDENCE 95'),
    (SQLSyntaxError, 'WITHIN', 'SELECT COUNT(*) FROM t WITHIN 5 CONFIDENCE 99.9999999999'),
    (SQLSyntaxError, 'WITHIN', 'SELECT COUNT(*) FROM t WITHIN 1e999'),
    (SQLSyntaxError, '0.95', 'SELECT COUNT(*) FROM t WITHIN 5 CONFIDENCE 0.95'),
    (SQLSyntaxError, 'WITHIN', 'SELECT COUNT(*) FROM t WITHIN :e'),
    (UnsupportedSQL, 'age', 'SELECT ABS(SUM(age)) FROM t WITHIN 5'),
    (UnsupportedSQL, 'age', 'SELECT STDDEV(age) FROM t WITHIN 5'),
    (InvalidPrivacyParameter, '*', 'SELECT COUNT(*, epsilon => 2), SUM(age) FROM t WITHIN 5'),
    (UnsupportedSQL, 'age', 'SELECT AVG(age) FROM t WITHIN 5'),
    (UnsupportedSQL, 'age', 'SELECT MEDIAN(age) FROM t WITHIN 5'),
    (UnsupportedSQL, 'age', 'SELECT SUM(n) FROM (SELECT s, SUM(age) AS n FROM t GROUP BY s) WITHIN 5'),
    (UnsupportedSQL, 'LAPLACE_THRESHOLD',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6, group_selection_strategy = LAPLACE_THRESHOLD) s, '
      'COUNT(*) FROM t GROUP BY ROLLUP (s)')),
    # DISTINCT.
    (UnknownGroups, 'city', 'SELECT DISTINCT city FROM t'),
    (UnknownGroups, 'age', 'SELECT DISTINCT age, year, hours FROM t'),
    (UnknownGroups, 'r', 'SELECT DISTINCT r FROM t'),
    (UnsupportedSQL, '*', 'SELECT DISTINCT * FROM t'),
    (SQLSyntaxError, '1', 'SELECT DISTINCT 1 FROM t'),
    (UnknownGroups, 'age + r', 'SELECT DISTINCT age + r FROM t'),
    (RawColumn, 's', 'SELECT DISTINCT s, COUNT(*) FROM t'),
    (RawColumn, 'age', 'SELECT DISTINCT COUNT(*), age FROM t'),
    (RawColumn, 'age', 'SELECT DISTINCT s FROM t ORDER BY age'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(DISTINCT s, b) FROM t'),
    (UnsupportedSQL, 'AVG', 'SELECT AVG(DISTINCT age) FROM t'),
    # Aggregates.
    (TypeMismatch, 'age', 'SELECT COUNT(*) FILTER (WHERE age) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT(*) FILTER () FROM t'),
    (SQLSyntaxError, 'ABS(age) FILTER (WHERE b', 'SELECT ABS(age) FILTER (WHERE b) FROM t'),
    (SQLSyntaxError, '(', 'SELECT s FILTER (WHERE b) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM t'),
    (TypeMismatch, 'age', 'SELECT COUNT_IF(age) FROM t'),
    (UnsupportedSQL, '*', 'SELECT COUNT_IF(*) FROM t'),
    (SQLSyntaxError, ')', 'SELECT COUNT_IF() FROM t'),
    (UnsupportedSQL, 'b', 'SELECT COUNT_IF(b, b) FROM t'),
    (TypeMismatch, 's', 'SELECT COUNTIF(s) FROM t'),
    (SQLSyntaxError, '(', 'SELECT SUM(age) FILTER (WHERE b) FILTER (WHERE b) FROM t'),
    (UnsupportedSQL, 'BOOL_AND', 'SELECT BOOL_AND(b) FROM t'),
    (UnsupportedSQL, 'ANY_VALUE', 'SELECT ANY_VALUE(age) FROM t'),
    (UnsupportedSQL, 'FIRST', 'SELECT FIRST(age) FROM t'),
    (UnsupportedSQL, 'LAST', 'SELECT LAST(age) FROM t'),
    (UnsupportedSQL, "s, ','", "SELECT STRING_AGG(s, ',') FROM t"),
    (UnsupportedSQL, 'ARRAY_AGG', 'SELECT ARRAY_AGG(age) FROM t'),
    (UnsupportedSQL, 'LIST', 'SELECT LIST(age) FROM t'),
    (UnsupportedSQL, 'ARG_MAX', 'SELECT ARG_MAX(age, r) FROM t'),
    (UnsupportedSQL, 'PRODUCT', 'SELECT PRODUCT(age) FROM t'),
    (UnsupportedSQL, 'ENTROPY', 'SELECT ENTROPY(age) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT MAX(COUNT(*)) FROM t'),
    (SQLSyntaxError, 'MIN', 'SELECT MIN(*) FROM t'),
    (SQLSyntaxError, None, 'SELECT MAX() FROM t'),
    # Parameters without a value, or written in another way.
    (SQLSyntaxError, ':', 'SELECT COUNT(*) FROM t WHERE age > :'),
    (SQLSyntaxError, ':', 'SELECT COUNT(*) FROM t WHERE age > :1'),
    (UnknownColumn, 'low', 'SELECT COUNT(*) FROM t WHERE age > @low'),
    (SQLSyntaxError, 's', 'SELECT COUNT(*) FROM t WHERE age > %s'),
    (UnsupportedSQL, '{', 'SELECT COUNT(*) FROM t WHERE age > {low}'),
    (SQLSyntaxError, ':', 'SELECT COUNT(*) FROM :t'),
    (InvalidParameter, ':x', 'SELECT :x, COUNT(*) FROM t'),
    (InvalidParameter, ':n', 'SELECT COUNT(*) FROM t LIMIT :n'),
    (InvalidParameter, ':n', 'SELECT COUNT(*) FROM t GROUP BY :n'),
    # WITH DIFFERENTIAL_PRIVACY.
    (InvalidPrivacyParameter, '2', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2) COUNT(*) FROM t'),
    (SQLSyntaxError, 'epsilom', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 1) COUNT(*) FROM t'),
    (SQLSyntaxError, 'epsilon', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, epsilon = 1) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '0', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '-1', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) COUNT(*) FROM t'),
    (SQLSyntaxError, "'1'", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = '1') COUNT(*) FROM t"),
    (InvalidParameter, ':e', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = :e) COUNT(*) FROM t'),
    (SQLSyntaxError, 'age', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = age) COUNT(*) FROM t'),
    (SQLSyntaxError, 'NULL', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = NULL) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '1e999', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e999) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '1e-300', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-300) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '1', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1) COUNT(*) FROM t'),
    (InvalidPrivacyParameter, '-1e-9', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = -1e-9) COUNT(*) FROM t'),
    (SQLSyntaxError, 'epsilon', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon) COUNT(*) FROM t'),
    (SQLSyntaxError, 'epsilon', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon => 1) COUNT(*) FROM t'),
    (SQLSyntaxError, ')', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = ) COUNT(*) FROM t'),
    (SQLSyntaxError, '=', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS epsilon = 1 COUNT(*) FROM t'),
    (SQLSyntaxError, 'COUNT', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1 COUNT(*) FROM t'),
    (SQLSyntaxError, 'PRIVACY', 'SELECT WITH PRIVACY COUNT(*) FROM t'),
    (SQLSyntaxError, 'ANONYMIZATION', 'SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1) COUNT(*) FROM t'),
    (UnsupportedSQL, 'age', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = age) COUNT(*) FROM t'),
    (UnknownColumn, 'nope', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = nope) COUNT(*) FROM t'),
    (SQLSyntaxError, "'age'", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = 'age') COUNT(*) FROM t"),
    (SQLSyntaxError, '0', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 0) COUNT(*) FROM t'),
    (SQLSyntaxError, '1.5', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1.5) COUNT(*) FROM t'),
    (SQLSyntaxError, 'FOO',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = FOO) s, COUNT(*) FROM t GROUP BY s'),
    (UnknownGroups, 'city',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = PUBLIC_GROUPS) city, COUNT(*) '
      'FROM t GROUP BY city')),
    (UnknownGroups, None,
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = LAPLACE_THRESHOLD) s, COUNT(*) '
      'FROM t GROUP BY s')),
    (UnknownGroups, 'city',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = GAUSSIAN_THRESHOLD) city, '
      'COUNT(*) FROM t GROUP BY city')),
    (UnknownGroups, 'city',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) city, '
      'COUNT(*) FROM t GROUP BY city')),
    (UnknownGroups, 'TRUNCATED_GEOMETRIC',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) s, COUNT(*) '
      'FROM t GROUP BY s')),
    (UnsupportedSQL, '5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 5) COUNT(*) FROM t'),
    (UnsupportedSQL, '5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 5) s, COUNT(*) FROM t GROUP BY s'),
    (SQLSyntaxError, '5',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 5, group_selection_strategy '
      '= PUBLIC_GROUPS) s, COUNT(*) FROM t GROUP BY s')),
    (UnsupportedSQL, '0.5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_epsilon = 0.5) s, COUNT(*) FROM t GROUP BY s'),
    (InvalidPrivacyParameter, '0.6',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, group_selection_epsilon = 0.6) city, '
      'COUNT(*) FROM t GROUP BY city')),
    (UnsupportedSQL, '0.5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_epsilon = 0.5) COUNT(*) FROM t'),
    (UnknownGroups, 'city',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_epsilon = 0.5) city, COUNT(*) FROM t GROUP BY city'),
    (SQLSyntaxError, 'report_format',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (report_format = JSON) COUNT(*) FROM t'),
    (RawColumn, 'age', 'SELECT WITH DIFFERENTIAL_PRIVACY age FROM t'),
    (UnknownGroups, 'age', 'SELECT WITH DIFFERENTIAL_PRIVACY DISTINCT age, year, hours FROM t'),
    (UnsupportedSQL, 'WITH DIFFERENTIAL_PRIVACY',
     'SELECT WITH DIFFERENTIAL_PRIVACY n FROM (SELECT COUNT(*) AS n FROM t)'),
    (RawColumn, 'age', 'SELECT COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY age FROM t)'),
    (UnsupportedSQL, 'WITH DIFFERENTIAL_PRIVACY',
     'SELECT WITH DIFFERENTIAL_PRIVACY n FROM (SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM t)'),
    (InvalidPrivacyParameter, '2',
     'SELECT n FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2) COUNT(*) AS n FROM t)'),
    (SQLSyntaxError, 'WITH', 'SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t WITH DIFFERENTIAL_PRIVACY'),
    (SQLSyntaxError, 'WITH', 'SELECT COUNT(*) FROM t WITH DIFFERENTIAL_PRIVACY'),
    # Named arguments.
    (SQLSyntaxError, 'contribution_bounds', 'SELECT AVG(age, contribution_bounds => (0, 1)) FROM t'),
    (SQLSyntaxError, 'contribution_bounds_per_row',
     'SELECT AVG(age, contribution_bounds_per_row => (0, 1), contribution_bounds_per_row => (0, 1)) FROM t'),
    (SQLSyntaxError, '(0, 1)',
     'SELECT AVG(age, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => (0, 1)) FROM t'),
    (SQLSyntaxError, '(1, 0)', 'SELECT AVG(age, contribution_bounds_per_row => (1, 0)) FROM t'),
    (SQLSyntaxError, '5', 'SELECT AVG(age, contribution_bounds_per_row => 5) FROM t'),
    (SQLSyntaxError, "(0, 'a')", "SELECT AVG(age, contribution_bounds_per_row => (0, 'a')) FROM t"),
    (SQLSyntaxError, '(0, age)', 'SELECT AVG(age, contribution_bounds_per_row => (0, age)) FROM t'),
    (SQLSyntaxError, '(0, 1, 2)', 'SELECT AVG(age, contribution_bounds_per_row => (0, 1, 2)) FROM t'),
    (InvalidParameter, ':x', 'SELECT AVG(age, contribution_bounds_per_row => (0, :x)) FROM t'),
    (SQLSyntaxError, '(0, 1e300)', 'SELECT AVG(age, contribution_bounds_per_row => (0, 1e300)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT AVG(contribution_bounds_per_row => (0, 1)) FROM t'),
    (SQLSyntaxError, 'age', 'SELECT AVG(contribution_bounds_per_row => (0, 1), age) FROM t'),
    (TypeMismatch, 'b', 'SELECT AVG(b, contribution_bounds_per_row => (0, 1)) FROM t'),
    (TypeMismatch, 's', 'SELECT AVG(s, contribution_bounds_per_row => (0, 1)) FROM t'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(*, contribution_bounds_per_row => (0, 1)) FROM t'),
    (UnsupportedSQL, '(2, 5)', 'SELECT COUNT(*, contribution_bounds_per_group => (2, 5)) FROM t'),
    (InvalidPrivacyParameter, None, 'SELECT COUNT(*, epsilon => 2) FROM t'),
    (InvalidPrivacyParameter, '0', 'SELECT COUNT(*, epsilon => 0) FROM t'),
    (SQLSyntaxError, "'1'", "SELECT COUNT(*, epsilon => '1') FROM t"),
    (InvalidPrivacyParameter, None, 'SELECT COUNT(*, epsilon => 1), SUM(age) FROM t'),
    (InvalidPrivacyParameter, None, 'SELECT COUNT(*, epsilon => 0.6), SUM(age, epsilon => 0.6) FROM t'),
    (UnsupportedSQL, 'epsilon = 1', 'SELECT COUNT(*, epsilon = 1) FROM t'),
    (UnsupportedSQL, "'PROTO'", "SELECT COUNT(*, report_format => 'PROTO') FROM t"),
    (SQLSyntaxError, "'XML'", "SELECT COUNT(*, report_format => 'XML') FROM t"),
    (SQLSyntaxError, '5', 'SELECT COUNT(*, report_format => 5) FROM t'),
    (TypeMismatch, "COUNT(*, report_format => 'JSON') + 1", "SELECT COUNT(*, report_format => 'JSON') + 1 FROM t"),
    (TypeMismatch, "COUNT(*, report_format => 'JSON') > 1",
     "SELECT s, COUNT(*) FROM t GROUP BY s HAVING COUNT(*, report_format => 'JSON') > 1"),
    (SQLSyntaxError, 'epsilon', 'SELECT SUM(ABS(age, epsilon => 1)) FROM t'),
    (UnsupportedSQL, 'CLAMP', 'SELECT SUM(CLAMP(age, lo => 1, hi => 2)) FROM t'),
    (SQLSyntaxError, 'digits', 'SELECT ROUND(COUNT(*), digits => 1) FROM t'),
    (SQLSyntaxError, 'FOO', 'SELECT FOO(age, epsilon => 1) FROM t'),
    (UnsupportedSQL, 'SUM', 'SELECT SUM(n, epsilon => 1) FROM (SELECT COUNT(*) AS n FROM t)'),
    (UnsupportedSQL, 'SUM', 'SELECT SUM(n, contribution_bounds_per_row => (0, 1)) FROM (SELECT COUNT(*) AS n FROM t)'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT_IF(b, contribution_bounds_per_row => (0, 1)) FROM t'),
    (UnsupportedSQL, "COUNT", "SELECT COUNT(*, epsilon => 1) OVER () FROM t"),
    # DP_INTERVAL_LOW and DP_INTERVAL_HIGH.
    (SQLSyntaxError, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW() FROM t'),
    (SQLSyntaxError, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 0.9, 1) FROM t'),
    (UnknownColumn, 'm', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(m) FROM t'),
    (SQLSyntaxError, '1', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 1) FROM t'),
    (SQLSyntaxError, '95', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 95) FROM t'),
    (SQLSyntaxError, '0', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 0) FROM t'),
    (SQLSyntaxError, "'a'", "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 'a') FROM t"),
    (SQLSyntaxError, 'age', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, age) FROM t'),
    (SQLSyntaxError, 'DP_INTERVAL_LOW', 'SELECT s, DP_INTERVAL_LOW(s), COUNT(*) FROM t GROUP BY s'),
    (SQLSyntaxError, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(5) FROM t'),
    (RawColumn, 'age', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(age) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) FROM t WHERE DP_INTERVAL_LOW(age) > 1'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT SUM(DP_INTERVAL_LOW(age)) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_MID', 'SELECT COUNT(*) AS n, DP_INTERVAL_MID(n) FROM t'),
    (SQLSyntaxError, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(DP_INTERVAL_LOW(n)) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT DP_INTERVAL_LOW(n) FROM (SELECT COUNT(*) AS n FROM t)'),
    (SQLSyntaxError, 'x', 'SELECT DP_INTERVAL_LOW(x) AS x, COUNT(*) FROM t'),
    (UnsupportedSQL, '*', 'SELECT COUNT(*) AS n, DP_INTERVAL_LOW(*) FROM t'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW', 'SELECT COUNT(*) AS n FROM t GROUP BY DP_INTERVAL_LOW(n)'),
    # Sub-queries.
    (RawColumn, '*', 'SELECT * FROM (SELECT age FROM t)'),
    (RawColumn, 'age', 'SELECT age FROM (SELECT age FROM t)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM (SELECT age FROM t LIMIT 5)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM (SELECT age FROM t OFFSET 5)'),
    (UnsupportedSQL, 'age', 'SELECT COUNT(*) FROM (SELECT age FROM t ORDER BY age)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM (SELECT age FROM t ORDER BY age LIMIT 5)'),
    (AmbiguousColumn, 'x', 'SELECT SUM(x) FROM (SELECT age AS x, r AS x FROM t)'),
    (AmbiguousColumn, 'x', 'SELECT SUM(x) FROM (SELECT age AS x, r AS X FROM t) AS q'),
    (AmbiguousColumn, 'q.x', 'SELECT SUM(q.x) FROM (SELECT age AS x, r AS x FROM t) AS q'),
    (AmbiguousColumn, 'age', 'SELECT COUNT(*) FROM (SELECT *, age FROM t) WHERE age > 1'),
    (UnknownColumn, 'x', 'SELECT SUM(x) FROM (SELECT age FROM t)'),
    (UnknownColumn, 'age', 'SELECT SUM(age) FROM (SELECT age AS x FROM t)'),
    (UnknownTable, 't', 'SELECT SUM(t.age) FROM (SELECT age FROM t)'),
    (UnknownTable, 't', 'SELECT SUM(t.age) FROM (SELECT age FROM t) AS q'),
    (MissingBounds, 'x', 'SELECT SUM(x) FROM (SELECT r AS x FROM t)'),
    (TypeMismatch, 'x', 'SELECT SUM(x) FROM (SELECT s AS x FROM t)'),
    (UnknownColumn, 'agee', 'SELECT SUM(x) FROM (SELECT agee AS x FROM t)'),
    (UnsupportedSQL, 'OVER', 'SELECT COUNT(*) FROM (SELECT age, COUNT(*) OVER () FROM t)'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FROM (SELECT age FROM t WHERE COUNT(*) > 1)'),
    (RawColumn, 'age', 'SELECT age FROM (SELECT age FROM t UNION ALL SELECT age FROM t)'),
    (UnsupportedSQL, 't', 'SELECT COUNT(*) FROM (SELECT age FROM t), t'),
    (UnsupportedSQL, 't', 'SELECT COUNT(*) FROM (SELECT age FROM t) JOIN t ON TRUE'),
    (RawColumn, 'age', 'SELECT age FROM ((SELECT age FROM t))'),
    (SQLSyntaxError, 'q(a, b', 'SELECT COUNT(*) FROM (SELECT age FROM t) q(a, b)'),
    (SQLSyntaxError, 'q(a, b, c, d, e, f, g, h, i, j, k, l',
     'SELECT COUNT(*) FROM t q(a, b, c, d, e, f, g, h, i, j, k, l)'),
    (UnknownColumn, 'age', 'SELECT SUM(age) FROM t q(a)'),
    (RawColumn, 'a', 'SELECT a FROM t q(a)'),
    (AmbiguousColumn, 'a', 'SELECT COUNT(*) FROM t q(a, a) WHERE a > 1'),
    (UnsupportedSQL, 'TABLESAMPLE', 'SELECT COUNT(*) FROM (SELECT age FROM t) TABLESAMPLE 10%'),
    (UnsupportedSQL, 'TABLESAMPLE', 'SELECT COUNT(*) FROM (SELECT age FROM t TABLESAMPLE 10%)'),
    (UnsupportedSQL, ';', 'SELECT COUNT(*) FROM (SELECT age FROM t;)'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM (SELECT age FROM u)'),
    (UnknownGroups, 'city', 'SELECT COUNT(*) FROM (SELECT DISTINCT city FROM t)'),
    (UnknownGroups, 'city', 'SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM t GROUP BY city)'),
    (RawColumn, 'age', 'SELECT n FROM (SELECT age, COUNT(*) AS n FROM t)'),
    (UnknownColumn, 'age', 'SELECT age FROM (SELECT COUNT(*) AS n FROM t)'),
    (SQLSyntaxError, 'n', 'SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM t)'),
    (SQLSyntaxError, 'SUM', 'SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM t) WHERE SUM(n) > 1'),
    (TypeMismatch, 'n', 'SELECT n FROM (SELECT COUNT(*) AS n FROM t) WHERE n'),
    (TypeMismatch, "n = 'a'", "SELECT n FROM (SELECT COUNT(*) AS n FROM t) WHERE n = 'a'"),
    (SQLSyntaxError, 'n', 'SELECT n FROM (SELECT COUNT(*) AS n FROM t) HAVING n > 1'),
    (TypeMismatch, 's', 'SELECT SUM(s) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)'),
    (SQLSyntaxError, '5', 'SELECT n FROM (SELECT COUNT(*) AS n FROM t) GROUP BY 5'),
    (SQLSyntaxError, '5', 'SELECT n FROM (SELECT COUNT(*) AS n FROM t) ORDER BY 5'),
    (SQLSyntaxError, '1.5', 'SELECT n FROM (SELECT COUNT(*) AS n FROM t) LIMIT 1.5'),
    (UnknownColumn, 'm', 'SELECT m FROM (SELECT COUNT(*) AS n FROM t)'),
    (SQLSyntaxError, 'n', 'SELECT * FROM (SELECT COUNT(*) AS n FROM t) GROUP BY n + 1'),
    (SQLSyntaxError, None, 'SELECT *, COUNT(*) FROM (SELECT COUNT(*) AS n FROM t)'),
    (UnsupportedSQL, 'n', 'SELECT * EXCLUDE n FROM (SELECT COUNT(*) AS n FROM t)'),
    (UnknownTable, 'q', 'SELECT q.n FROM (SELECT COUNT(*) AS n FROM t) AS p'),
    (UnsupportedSQL, 'age FROM t', 'SELECT COUNT(*) FROM LATERAL (SELECT age FROM t)'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM (SELECT * EXCLUDE agee FROM t)'),
    (SQLSyntaxError, 'AGE', 'SELECT COUNT(*) FROM (SELECT * EXCLUDE (age, AGE) FROM t)'),
    (UnsupportedSQL, 't.age', 'SELECT COUNT(*) FROM (SELECT * EXCLUDE (t.age) FROM t)'),
    (UnknownColumn, 'nope', 'SELECT COUNT(*) FROM (SELECT t.* FROM t) WHERE nope = 1'),
    (UnknownTable, 'u', 'SELECT COUNT(*) FROM (SELECT u.* FROM t)'),
    (UnsupportedSQL, '1', 'SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT age FROM t LIMIT 1))'),
    (UnsupportedSQL, 'age FROM t', 'SELECT COUNT(*) FROM t WHERE age NOT IN (SELECT age FROM t)'),
    (SQLSyntaxError, '1', 'SELECT COUNT(*) FROM t LIMIT (SELECT 1)'),
    # WITH.
    (UnsupportedSQL, '5', 'WITH x AS (SELECT age FROM t LIMIT 5) SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, 'x AS (SELECT age FROM t',
     'WITH x AS (SELECT age FROM t), x AS (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, 'X AS (SELECT age FROM t',
     'WITH x AS (SELECT age FROM t), X AS (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (UnknownTable, 'y', 'WITH x AS (SELECT age FROM t) SELECT COUNT(*) FROM y'),
    (UnknownColumn, 'x.r', 'WITH x AS (SELECT age FROM t) SELECT SUM(x.r) FROM x'),
    (UnsupportedSQL, 'x', 'WITH x AS (SELECT age FROM t) SELECT COUNT(*) FROM x, x'),
    (UnknownTable, 'x', 'WITH x AS (SELECT age FROM x) SELECT COUNT(*) FROM x'),
    (UnknownTable, 'y', 'WITH x AS (SELECT age FROM y), y AS (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (UnsupportedSQL, 'RECURSIVE',
     'WITH RECURSIVE x AS (SELECT age FROM t UNION ALL SELECT age FROM x) SELECT COUNT(*) FROM x'),
    (UnsupportedSQL, 'RECURSIVE', 'WITH RECURSIVE x AS (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, 'x(a, b', 'WITH x(a, b) AS (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (UnknownColumn, 'age', 'WITH x(a) AS (SELECT age FROM t) SELECT SUM(age) FROM x'),
    (UnknownColumn, 'agee', 'WITH x AS (SELECT agee FROM t) SELECT COUNT(*) FROM t'),
    (UnknownTable, 'u', 'WITH x AS (SELECT age FROM u) SELECT COUNT(*) FROM t'),
    (TypeMismatch, 's', 'WITH x AS (SELECT SUM(s) FROM t) SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, '1', 'WITH x AS (SELECT age FROM t LIMIT 1) SELECT COUNT(*) FROM t'),
    (SQLSyntaxError, 'epsilom',
     'WITH x AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 1) COUNT(*) FROM t) SELECT COUNT(*) FROM t'),
    (InvalidParameter, ':p', 'WITH x AS (SELECT COUNT(*) FROM t WHERE age > :p) SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, 't', 'WITH x AS (DELETE FROM t) SELECT COUNT(*) FROM t'),
    (UnsupportedSQL, 'UNION', 'WITH x AS (SELECT age FROM t UNION SELECT age FROM t) SELECT COUNT(*) FROM t'),
    (SQLSyntaxError, 'SELECT', 'WITH x AS SELECT age FROM t SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, ')', 'WITH x AS (SELECT age FROM t)'),
    (SQLSyntaxError, 'SELECT', 'WITH x AS () SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, '(', 'WITH AS (SELECT age FROM t) SELECT COUNT(*) FROM t'),
    (RawColumn, '*', 'WITH x AS (SELECT age FROM t) SELECT * FROM x'),
    (RawColumn, 'age', 'WITH x AS (SELECT age FROM t) SELECT age FROM x'),
    (UnsupportedSQL, 'MATERIALIZED', 'WITH x AS MATERIALIZED (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (SQLSyntaxError, 'NOT', 'WITH x AS NOT MATERIALIZED (SELECT age FROM t) SELECT COUNT(*) FROM x'),
    (UnsupportedSQL, 'age FROM x',
     'WITH x AS (SELECT age FROM t) SELECT COUNT(*) FROM t WHERE age IN (SELECT age FROM x)'),
    (UnsupportedSQL, 't', 'WITH x AS (SELECT age FROM t) SELECT COUNT(*) FROM x JOIN t ON x.age = t.age'),
    (UnsupportedSQL, 'DELETE', 'WITH x AS (SELECT age FROM t) DELETE FROM x'),
    (SQLSyntaxError, '5', 'WITH x AS 5 SELECT COUNT(*) FROM t'),
    (UnknownColumn, 'age', 'WITH t AS (SELECT age AS a FROM t) SELECT SUM(age) FROM t'),
    # Windows, joins, set operations, samples, and the rest.
    (UnsupportedSQL, 'OVER', 'SELECT LAG(age) OVER (ORDER BY r) FROM t'),
    (UnsupportedSQL, 't b', 'SELECT COUNT(*) FROM t a JOIN t b ON a.age = b.age'),
    (UnsupportedSQL, 't', 'SELECT COUNT(*) FROM t NATURAL JOIN t'),
    (UnsupportedSQL, 't b', 'SELECT COUNT(*) FROM t ASOF JOIN t b ON t.age >= b.age'),
    (UnsupportedSQL, 't b ON t.age = b.age', 'SELECT COUNT(*) FROM t SEMI JOIN t b ON t.age = b.age'),
    (UnsupportedSQL, 't b', 'SELECT COUNT(*) FROM t POSITIONAL JOIN t b'),
    (UnsupportedSQL, 't b', 'SELECT COUNT(*) FROM t a, t b'),
    (UnsupportedSQL, '1', 'SELECT COUNT(*) FROM t, LATERAL (SELECT 1)'),
    (RawColumn, "age", "SELECT age FROM t UNION ALL SELECT age FROM t"),
    (UnsupportedSQL, 'TABLESAMPLE', 'SELECT COUNT(*) FROM t TABLESAMPLE BERNOULLI (10 PERCENT)'),
    (UnsupportedSQL, 'SAMPLE', 'SELECT COUNT(*) FROM t USING SAMPLE 10% (SYSTEM)'),
    (UnsupportedSQL, 'age', 'SELECT COUNT(*) FROM t CONNECT BY age'),
    (UnknownColumn, 'agee', 'SELECT COUNT(*) FROM t UNPIVOT (a FOR b IN (agee))'),
    (UnsupportedSQL, '1', 'SELECT COUNT(*) FROM t AT (VERSION => 1)'),
    (UnknownTable, "'t.csv'", "SELECT COUNT(*) FROM 't.csv'"),
    (UnknownTable, 'csv', 'SELECT COUNT(*) FROM t.csv'),
    (UnsupportedSQL, '1', 'SELECT COUNT(*) FROM t ORDER BY 1 COLLATE NOCASE'),
    (SQLSyntaxError, 'TOP', 'SELECT TOP 5 COUNT(*) FROM t'),
    (SQLSyntaxError, 'n', 'SELECT n: COUNT(*) FROM t'),
    (UnsupportedSQL, None, 'SELECT #1 FROM t'),
    (SQLSyntaxError, 'AND', 'SELECT COUNT(*) FROM t WHERE age > 1 AND'),
    (SQLSyntaxError, 'age', 'SELECT COUNT(*) FROM t WHERE age IN ()'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM t WHERE age IN 5'),
    (TypeMismatch, "age IN (1, 'a')", "SELECT COUNT(*) FROM t WHERE age IN (1, 'a')"),
    (SQLSyntaxError, '1', 'SELECT COUNT(*) FROM t WHERE age BETWEEN 1'),
    (TypeMismatch, "age BETWEEN 'a' AND 'b'", "SELECT COUNT(*) FROM t WHERE age BETWEEN 'a' AND 'b'"),
    (TypeMismatch, "age IS DISTINCT FROM 'a'", "SELECT COUNT(*) FROM t WHERE age IS DISTINCT FROM 'a'"),
    (SQLSyntaxError, 'age IS NOT 5', 'SELECT COUNT(*) FROM t WHERE age IS NOT 5'),
    (SQLSyntaxError, 'b IS UNKNOWN IS 5', 'SELECT COUNT(*) FROM t WHERE b IS UNKNOWN IS 5'),
    (TypeMismatch, 'age', 'SELECT COUNT(*) FROM t WHERE age IS TRUE'),
    (UnsupportedSQL, 'b, b', 'SELECT COUNT(*) FROM t WHERE (b, b)'),
    (UnsupportedSQL, 'x -> x + 1', 'SELECT COUNT(*) FROM t WHERE x -> x + 1'),
    (UnsupportedSQL, 'x -> x + 1', 'SELECT COUNT(*) FROM t WHERE (x -> x + 1)'),
    (UnsupportedSQL, 'LIST_TRANSFORM', 'SELECT COUNT(*) FROM t WHERE LIST_TRANSFORM([1], x -> x)'),
    (UnsupportedSQL, 'TRY', 'SELECT COUNT(*) FROM t WHERE TRY(age)'),
    (UnsupportedSQL, 'TYPEOF', 'SELECT COUNT(TYPEOF(age)) FROM t'),
    (UnsupportedSQL, 'HASH', 'SELECT COUNT(HASH(age)) FROM t'),
    (UnsupportedSQL, 'UUID', 'SELECT COUNT(UUID()) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(LOG(age, 2, 3)) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(POWER(age)) FROM t'),
    (TypeMismatch, 'SQRT', 'SELECT SUM(SQRT(s)) FROM t'),
    (MissingBounds, 'LN', 'SELECT SUM(LN(r)) FROM t'),
    (MissingBounds, 'r // 2', 'SELECT SUM(r // 2) FROM t'),
    (SQLSyntaxError, ')', 'SELECT SUM(PI(1)) FROM t'),
    (SQLSyntaxError, '!', 'SELECT SUM(age !) FROM t'),
    (SQLSyntaxError, '(', 'SELECT SUM(age) SUM(r) FROM t'),
    (SQLSyntaxError, 't', 'SELECT SUM(age) AS FROM t'),
    (SQLSyntaxError, "'a'", "SELECT SUM(age) 'a' FROM t"),
    (SQLSyntaxError, 'AS', 'SELECT COUNT(*) AS n AS m FROM t'),
]  # fmt: skip

# The same, of `units`.
OF_UNITS: list[tuple[type[DPSQLError], str | None, str]] = [
    (MissingBounds, '*', 'SELECT COUNT(*) FROM tests'),
    (MissingBounds, 'score', 'SELECT SUM(score) FROM tests'),
    (MissingBounds, '*', 'SELECT score, COUNT(*) FROM tests GROUP BY score'),
    (MissingBounds, '*',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) score, COUNT(*) FROM tests GROUP BY score'),
    (InvalidPrivacyParameter, '1000000001',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1000000001) COUNT(*) FROM tests'),
    (InvalidPrivacyParameter, '1000000001',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1000000001) s, COUNT(*) FROM '
      'visits GROUP BY s')),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM loose, days a, days b, days c, days d'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits, days a, days b, days c, days d'),
    (UnsupportedSQL, 'visits', 'SELECT COUNT(*) FROM people JOIN visits ON people.s = visits.s'),
    (UnsupportedSQL, 'visits', 'SELECT COUNT(*) FROM people, visits'),
    (UnsupportedSQL, 'visits b', 'SELECT COUNT(*) FROM visits a JOIN visits b ON a.s = b.s'),
    (UnsupportedSQL, 'tests', 'SELECT COUNT(*) FROM people JOIN tests ON age = score'),
    (UnsupportedSQL, 'tests', 'SELECT COUNT(*) FROM people JOIN tests ON pid = vid'),
    (UnsupportedSQL, 'tests',
     'SELECT COUNT(*) FROM people JOIN visits ON people.pid = visits.pid JOIN tests ON tests.score = people.age'),
    (UnsupportedSQL, 'loose', 'SELECT COUNT(*) FROM people JOIN loose ON people.pid = loose.pid'),
    (UnsupportedSQL, 'loose b', 'SELECT COUNT(*) FROM loose a JOIN loose b ON a.pid = b.pid'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits JOIN codes ON visits.s = codes.name'),
    (UnsupportedSQL, 'labels', 'SELECT COUNT(*) FROM visits JOIN labels ON visits.s = label'),
    (UnsupportedSQL, 'labels', 'SELECT COUNT(*) FROM visits LEFT JOIN labels ON visits.s = label'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits LEFT JOIN codes ON visits.s = codes.name'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits LEFT JOIN codes ON cost > n'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits LEFT JOIN codes ON visits.code = codes.code AND cost > n'),
    (UnsupportedSQL, 'visits', 'SELECT COUNT(*) FROM people LEFT JOIN visits ON people.s = visits.s'),
    (UnsupportedSQL, 'loose', 'SELECT COUNT(*) FROM people LEFT JOIN loose ON people.pid = loose.pid'),
    (SQLSyntaxError, 'codes', 'SELECT COUNT(*) FROM visits LEFT JOIN codes'),
    (SQLSyntaxError, 'codes', 'SELECT COUNT(*) FROM visits CROSS JOIN codes ON visits.code = codes.code'),
    (SQLSyntaxError, 'codes', 'SELECT COUNT(*) FROM visits CROSS JOIN codes USING (code)'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits FULL JOIN codes ON visits.code = codes.code'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits FULL OUTER JOIN codes USING (code)'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits NATURAL JOIN codes'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits ASOF JOIN codes ON cost >= n'),
    (UnsupportedSQL, 'codes', 'SELECT COUNT(*) FROM visits POSITIONAL JOIN codes'),
    (UnknownColumn, 'nope', 'SELECT COUNT(*) FROM visits JOIN codes USING (nope)'),
    (UnknownColumn, 'cost', 'SELECT COUNT(*) FROM visits JOIN codes USING (cost)'),
    (UnknownColumn, 'pid', 'SELECT COUNT(*) FROM visits JOIN codes USING (pid)'),
    (UnknownColumn, 'pid', 'SELECT COUNT(*) FROM visits JOIN people USING (pid) JOIN tests USING (vid, pid)'),
    (UnsupportedSQL, 'people', 'SELECT COUNT(*) FROM visits JOIN people USING (s)'),
    (AmbiguousColumn, 's', "SELECT COUNT(*) FROM visits JOIN people USING (pid) WHERE s = 'a'"),
    (AmbiguousColumn, 's', 'SELECT s, COUNT(*) FROM visits JOIN people USING (pid) GROUP BY s'),
    (AmbiguousColumn, 'pid', 'SELECT COUNT(*) FROM visits JOIN people ON pid = pid'),
    (UnknownColumn, 'nope', 'SELECT COUNT(*) FROM visits JOIN people ON visits.pid = people.pid WHERE nope = 1'),
    (UnknownColumn, 'visits.nope',
     'SELECT COUNT(*) FROM visits JOIN people ON visits.pid = people.pid WHERE visits.nope = 1'),
    (UnknownTable, 'codes',
     "SELECT COUNT(*) FROM visits JOIN people ON visits.pid = people.pid WHERE codes.code = 'a'"),
    (UnknownTable, 'visits', 'SELECT COUNT(*) FROM visits v JOIN people p ON visits.pid = p.pid'),
    (AmbiguousColumn, 'visits', 'SELECT COUNT(*) FROM visits JOIN visits ON visits.pid = visits.pid'),
    (AmbiguousColumn, 'v', 'SELECT COUNT(*) FROM visits v JOIN people v ON v.pid = v.pid'),
    (TypeMismatch, 'visits.pid', 'SELECT COUNT(*) FROM visits JOIN people ON visits.pid'),
    (TypeMismatch, 'visits.pid = people.s', 'SELECT COUNT(*) FROM visits JOIN people ON visits.pid = people.s'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FROM visits JOIN people ON COUNT(*) > 1'),
    (SQLSyntaxError, 'SUM', 'SELECT COUNT(*) FROM visits JOIN people ON visits.pid = people.pid AND SUM(cost) > 1'),
    (UnsupportedSQL, '1 FROM codes', 'SELECT COUNT(*) FROM visits JOIN people ON EXISTS (SELECT 1 FROM codes)'),
    (RawColumn, '*', 'SELECT * FROM visits JOIN people USING (pid)'),
    (RawColumn, 'people.*', 'SELECT people.* FROM visits JOIN people USING (pid)'),
    (RawColumn, 'age', 'SELECT age FROM visits JOIN people USING (pid)'),
    (AmbiguousColumn, 's', "SELECT COUNT(*) FROM (SELECT * FROM visits JOIN people USING (pid)) WHERE s = 'a'"),
    (UnsupportedSQL, '1', 'SELECT COUNT(*) FROM visits, LATERAL (SELECT 1)'),
    (UnknownTable, 'nowhere', 'SELECT COUNT(*) FROM visits, nowhere'),
    (UnsupportedSQL, 'vid FROM tests', 'SELECT COUNT(*) FROM visits WHERE pid IN (SELECT vid FROM tests)'),
    (UnsupportedSQL, 'cost FROM visits', 'SELECT COUNT(*) FROM people WHERE age IN (SELECT cost FROM visits)'),
    (UnsupportedSQL, '1 FROM visits', 'SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits)'),
    (UnsupportedSQL, '1 FROM visits WHERE visits.s = people.s',
     'SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.s = people.s)'),
    (UnsupportedSQL, 'pid FROM loose', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM loose)'),
    (UnsupportedSQL, 'pid FROM people', 'SELECT COUNT(*) FROM loose WHERE pid IN (SELECT pid FROM people)'),
    (UnsupportedSQL, '1 FROM loose AS q WHERE q.pid = loose.pid',
     'SELECT COUNT(*) FROM loose WHERE EXISTS (SELECT 1 FROM loose AS q WHERE q.pid = loose.pid)'),
    (UnsupportedSQL, "code FROM visits", "SELECT COUNT(*) FROM codes WHERE code IN (SELECT code FROM visits)"),
    (UnsupportedSQL, "1 FROM visits WHERE visits.code = codes.code",
     "SELECT COUNT(*) FROM codes WHERE EXISTS (SELECT 1 FROM visits WHERE visits.code = codes.code)"),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits LIMIT 5)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits OFFSET 5)'),
    (UnsupportedSQL, 'cost', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits ORDER BY cost)'),
    (UnsupportedSQL, None,
     'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits UNION ALL SELECT pid FROM visits)'),
    (UnsupportedSQL, 'WITH DIFFERENTIAL_PRIVACY pid FROM visits',
     'SELECT COUNT(*) FROM people WHERE pid IN (SELECT WITH DIFFERENTIAL_PRIVACY pid FROM visits)'),
    (TypeMismatch, 'pid', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT s FROM visits GROUP BY s)'),
    (SQLSyntaxError, 'pid, vid FROM visits', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid, vid FROM visits)'),
    (SQLSyntaxError, 'pid FROM visits', 'SELECT COUNT(*) FROM people WHERE (pid, age) IN (SELECT pid FROM visits)'),
    (SQLSyntaxError, '* FROM visits', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT * FROM visits)'),
    (TypeMismatch, 'pid', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT s FROM visits)'),
    (UnknownColumn, 'nope', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT nope FROM visits)'),
    (UnknownTable, 'nowhere', 'SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM nowhere)'),
    (UnsupportedSQL, 'code FROM codes WHERE n > cost',
     'SELECT COUNT(*) FROM visits WHERE code NOT IN (SELECT code FROM codes WHERE n > cost)'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT code FROM codes WHERE COUNT(*) > 1)'),
    (UnsupportedSQL, 's IN (SELECT code FROM codes',
     'SELECT s, COUNT(*) FROM visits GROUP BY s HAVING s IN (SELECT code FROM codes)'),
    (UnsupportedSQL, '1 FROM codes', 'SELECT s, COUNT(*) FROM visits GROUP BY s HAVING EXISTS (SELECT 1 FROM codes)'),
    (UnsupportedSQL, 's IN (SELECT code FROM codes',
     'SELECT s IN (SELECT code FROM codes) AS k, COUNT(*) FROM visits GROUP BY s'),
    (UnsupportedSQL, 'n FROM codes', 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT n FROM codes)'),
    (UnsupportedSQL, 'n + 1 FROM codes', 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT n + 1 FROM codes)'),
    (UnsupportedSQL, 'MAX(n) + 1 FROM codes',
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) + 1 FROM codes)'),
    (UnsupportedSQL, 'MAX(n), MIN(n) FROM codes',
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n), MIN(n) FROM codes)'),
    (UnsupportedSQL, 'MAX(n) FROM codes WHERE n > cost',
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) FROM codes WHERE n > cost)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) FROM codes GROUP BY code)'),
    (UnsupportedSQL, 'code FROM visits',
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) FROM codes WHERE code IN (SELECT code FROM visits))'),
    (TypeMismatch, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(name) FROM codes)'),
    (SQLSyntaxError, 'codes', 'SELECT COUNT(*) FROM visits JOIN codes USING ()'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) FROM codes ORDER BY 1)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n) FROM codes LIMIT 1)'),
    (UnsupportedSQL, None,
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT n FROM codes UNION ALL SELECT n FROM codes)'),
    (UnsupportedSQL, None,
     'SELECT COUNT(*) FROM visits WHERE cost > (SELECT WITH DIFFERENTIAL_PRIVACY MAX(n) FROM codes)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(n, epsilon => 1) FROM codes)'),
    (UnsupportedSQL, 'cost',
     ('SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM tests WHERE tests.vid = visits.vid AND '
      'score IN (SELECT n FROM codes WHERE n > cost))')),
    (UnsupportedSQL, 'MAX(n) FROM codes', 'SELECT COUNT(*) FROM visits WHERE cost IN (SELECT MAX(n) FROM codes)'),
    (UnsupportedSQL, None,
     'SELECT COUNT(*) FROM visits WHERE code IN (SELECT code FROM codes GROUP BY code HAVING COUNT(*) > 1)'),
    (InvalidPrivacyParameter, None,
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-9, max_rows_contributed = 1000000000) COUNT(*) '
      'FROM visits')),
    (UnsupportedSQL, 'n FROM codes', 'SELECT COUNT(*) FROM visits WHERE cost = ANY (SELECT n FROM codes)'),
    (UnsupportedSQL, 'n FROM codes', 'SELECT COUNT(*) FROM visits WHERE cost > ALL (SELECT n FROM codes)'),
    (SQLSyntaxError, None, 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid, vid FROM visits)'),
    (TypeMismatch, None, 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT s FROM visits)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM loose)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM (SELECT s FROM people UNION ALL SELECT code FROM codes)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM (SELECT code FROM codes UNION ALL SELECT code FROM labels)'),
    (UnsupportedSQL, 'UNION', 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION SELECT pid FROM visits)'),
    (UnsupportedSQL, 'UNION', 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION DISTINCT SELECT pid FROM visits)'),
    (UnsupportedSQL, 'INTERSECT', 'SELECT COUNT(*) FROM (SELECT pid FROM people INTERSECT SELECT pid FROM visits)'),
    (UnsupportedSQL, 'EXCEPT', 'SELECT COUNT(*) FROM (SELECT pid FROM people EXCEPT SELECT pid FROM visits)'),
    (UnsupportedSQL, 'UNION', 'SELECT COUNT(*) FROM (SELECT * FROM people UNION ALL BY NAME SELECT pid FROM visits)'),
    (UnsupportedSQL, 'UNION',
     'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits ORDER BY pid)'),
    (UnsupportedSQL, 'UNION', 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits LIMIT 5)'),
    (UnsupportedSQL, 'UNION',
     'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits OFFSET 5)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL (SELECT pid FROM visits LIMIT 5))'),
    (TypeMismatch, 'd FROM visits UNION ALL SELECT 1 FROM people',
     'SELECT COUNT(*) FROM (SELECT d FROM visits UNION ALL SELECT 1 FROM people)'),
    (RawColumn, 'pid', 'SELECT pid FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits)'),
    (UnsupportedSQL, 'pid', 'SELECT pid, COUNT(*) FROM visits GROUP BY pid'),
    (UnsupportedSQL, 'vid', 'SELECT vid, COUNT(*) FROM visits GROUP BY vid'),
    (UnsupportedSQL, 'pid', 'SELECT DISTINCT pid FROM visits'),
    (UnsupportedSQL, '1', 'SELECT visits.pid, COUNT(*) FROM visits JOIN people USING (pid) GROUP BY 1'),
    (MissingBounds, 'vid', 'SELECT COUNT(DISTINCT vid) FROM tests'),
    (SQLSyntaxError, 'COUNT', 'SELECT COUNT(DISTINCT pid, vid) FROM visits'),
    (UnsupportedSQL, 'SUM', 'SELECT SUM(DISTINCT cost) FROM visits'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(DISTINCT vid, contribution_bounds_per_group => (0, 1)) FROM visits'),
    (UnsupportedSQL, '(0, 9)', 'SELECT MEDIAN(cost, contribution_bounds_per_group => (0, 9)) FROM visits'),
    (UnsupportedSQL, '(0, 9)', 'SELECT VAR_POP(cost, contribution_bounds_per_group => (0, 9)) FROM visits'),
    (MissingBounds, 'score', 'SELECT MEDIAN(score) FROM tests'),
    (MissingBounds, 'score', 'SELECT STDDEV(score) FROM tests'),
    (UnknownGroups, 'code', 'SELECT MODE(code) FROM visits'),
    (UnsupportedSQL, 'CORR', 'SELECT COUNT(*) FROM (SELECT pid, CORR(cost, r) FROM visits GROUP BY pid)'),
    (UnsupportedSQL, 'APPROX_TOP_K', 'SELECT COUNT(*) FROM (SELECT pid, APPROX_TOP_K(s, 2) FROM visits GROUP BY pid)'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE cost > (SELECT MEDIAN(n) FROM codes)'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(DISTINCT pid, contribution_bounds_per_group => (0, 1)) FROM visits'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(DISTINCT pid, contribution_bounds_per_row => (0, 1)) FROM visits'),
    (UnsupportedSQL, '(0, 1)', 'SELECT COUNT(*, contribution_bounds_per_row => (0, 1)) FROM visits'),
    (SQLSyntaxError, '(0, 1)',
     'SELECT AVG(r, contribution_bounds_per_group => (0, 1), contribution_bounds_per_row => (0, 1)) FROM visits'),
    (TypeMismatch, 's', 'SELECT SUM(s, contribution_bounds_per_group => (0, 1)) FROM visits'),
    (MissingBounds, 'r', 'SELECT SUM(r) FROM visits'),
    (MissingBounds, 'n', 'SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)'),
    (MissingBounds, 't', 'SELECT SUM(t) FROM (SELECT pid, SUM(cost) AS t FROM visits GROUP BY pid)'),
    (MissingBounds, 'm', 'SELECT AVG(m) FROM (SELECT pid, MAX(r) AS m FROM visits GROUP BY pid)'),
    (TypeMismatch, 's', 'SELECT COUNT(*) FROM (SELECT pid, MEDIAN(s) AS m FROM visits GROUP BY pid)'),
    (SQLSyntaxError, 's', 'SELECT COUNT(*) FROM (SELECT pid, s, COUNT(*) FROM visits GROUP BY pid)'),
    (TypeMismatch, 's', 'SELECT COUNT(*) FROM (SELECT pid, SUM(s) FROM visits GROUP BY pid)'),
    (UnsupportedSQL, 'FIRST', 'SELECT COUNT(*) FROM (SELECT pid, FIRST(cost) FROM visits GROUP BY pid)'),
    (UnsupportedSQL, '5', 'SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid LIMIT 5)'),
    (UnsupportedSQL, 'n', 'SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid ORDER BY n)'),
    (UnsupportedSQL, 'COUNT',
     'SELECT COUNT(*) FROM (SELECT pid, COUNT(*, epsilon => 1) AS n FROM visits GROUP BY pid)'),
    (UnsupportedSQL, 'SUM',
     ('SELECT COUNT(*) FROM (SELECT pid, SUM(cost, contribution_bounds_per_row => (0, 1)) AS n FROM visits '
      'GROUP BY pid)')),
    (UnsupportedSQL, 'pid',
     'SELECT COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY pid, COUNT(*) AS n FROM visits GROUP BY pid)'),
    (RawColumn, 'n', 'SELECT n FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)'),
    (RawColumn, 'pid', 'SELECT pid FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)'),
    (UnsupportedSQL, 'pid',
     'SELECT pid, AVG(CLAMP(n, 0, 9)) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) GROUP BY pid'),
    (UnknownGroups, 'n', 'SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) GROUP BY n'),
    (UnsupportedSQL, 'DP_INTERVAL_LOW',
     'SELECT COUNT(*) FROM (SELECT pid, DP_INTERVAL_LOW(COUNT(*)) AS n FROM visits GROUP BY pid)'),
    (TypeMismatch, 'n', 'SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid HAVING n)'),
    (SQLSyntaxError, 'cost',
     'SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid HAVING cost > 1)'),
    (UnsupportedSQL, '*', 'SELECT COUNT(*) FROM (SELECT DISTINCT * FROM visits)'),
    (UnsupportedSQL, 'vid',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = vid) COUNT(*) FROM visits'),
    (UnknownColumn, 'nope',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = nope) COUNT(*) FROM visits'),
    (UnsupportedSQL, 'pid', 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = pid) COUNT(*) FROM loose'),
    (UnknownColumn, 'code',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = code) COUNT(*) FROM codes'),
    (InvalidPrivacyParameter, '1',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6, group_selection_epsilon = 1) city, COUNT(*) '
      'FROM people GROUP BY city')),
    (InvalidPrivacyParameter, '2',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6, group_selection_epsilon = 2) city, COUNT(*) '
      'FROM people GROUP BY city')),
    (UnsupportedSQL, '0.5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_epsilon = 0.5) COUNT(*) FROM people'),
    (UnsupportedSQL, '5',
     'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 5) COUNT(*) FROM people'),
    (UnknownGroups, 'TRUNCATED_GEOMETRIC',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) s, '
      'COUNT(*) FROM people GROUP BY s')),
    (UnknownGroups, 'city',
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = PUBLIC_GROUPS) city FROM '
      'people GROUP BY city')),
    (InvalidPrivacyParameter, None,
     ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6, group_selection_strategy = '
      'TRUNCATED_GEOMETRIC) city, COUNT(*, epsilon => 1) FROM people GROUP BY city')),
    (RawColumn, '*', 'SELECT * FROM codes'),
    (RawColumn, 'name', 'SELECT name FROM codes'),
    (RawColumn, 'n', 'SELECT code, n FROM codes GROUP BY code'),
    (UnsupportedSQL, 'visits', 'SELECT COUNT(*) FROM visits, visits'),
    (UnsupportedSQL, 'tests c', 'SELECT COUNT(*) FROM visits a, people b, tests c WHERE a.pid = b.pid'),
    (UnsupportedSQL, 'people',
     'SELECT COUNT(*) FROM visits LEFT JOIN people ON visits.pid = people.pid AND visits.cost + people.age > 5'),
    (UnsupportedSQL, 'people', 'SELECT COUNT(*) FROM visits LEFT JOIN people ON TRUE'),
    (UnsupportedSQL, 'days', 'SELECT COUNT(*) FROM codes RIGHT JOIN days ON n = day'),
    (UnsupportedSQL, 'people', 'SELECT COUNT(*) FROM visits WHERE vid IN (SELECT tests.vid FROM tests, people)'),
    (UnsupportedSQL, 'visits.cost',
     ('SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM tests WHERE tests.vid = visits.vid AND '
      'EXISTS (SELECT 1 FROM people WHERE people.age = visits.cost))')),
    (SQLSyntaxError, 'SUM', 'SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM people) AND SUM(cost) > 1'),
    (UnsupportedSQL, '1 FROM people WHERE people.age = cost',
     'SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM people WHERE people.age = cost) THEN 1 END) FROM visits'),
    (UnsupportedSQL, None, 'SELECT COUNT(*) FROM visits WHERE EXISTS (FROM people)'),
    (UnsupportedSQL, 'people', 'SELECT COUNT(*) FROM visits WHERE pid IN people'),
    (UnsupportedSQL, 'pid FROM loose', 'SELECT COUNT(*) FROM visits WHERE pid IN (SELECT DISTINCT pid FROM loose)'),
    (UnsupportedSQL, None,
     'SELECT COUNT(*) FROM visits WHERE pid IN (WITH x AS (SELECT pid FROM loose) SELECT pid FROM x)'),
    (MissingBounds, 'n', 'WITH x AS (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) SELECT AVG(n) FROM x'),
    (UnsupportedSQL, '1',
     'WITH x AS (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid LIMIT 1) SELECT COUNT(*) FROM x'),
    (UnknownGroups, 'city', 'SELECT city, COUNT(*) FROM people GROUP BY city'),
    (RawColumn, 'codes.name', 'SELECT codes.name, COUNT(*) FROM visits LEFT JOIN codes USING (code) GROUP BY visits.s'),
    (RawColumn, 'pid', 'SELECT COUNT(*) FROM visits ORDER BY pid'),
    (MissingBounds, 'pid', 'SELECT AVG(pid) FROM visits'),
    (MissingBounds, 'h', 'SELECT SUM(h) FROM hashes'),
    (UnknownGroups, 'h', 'SELECT MODE(h) FROM hashes'),
    (UnknownGroups, 'h', 'SELECT h, COUNT(*) FROM hashes GROUP BY h'),
    (TypeMismatch, 'h // 10', 'SELECT COUNT(*) FROM hashes WHERE h // 10 = 0'),
    (TypeMismatch, 'h % w', 'SELECT COUNT(*) FROM hashes WHERE h % w = 0'),
    (TypeMismatch, "h = '5'", "SELECT COUNT(*) FROM hashes WHERE h = '5'"),
    (TypeMismatch, 'ABS', 'SELECT COUNT(*) FROM hashes WHERE ABS(h) = 5'),
    (TypeMismatch, 'h', 'SELECT COUNT(*) FROM (SELECT w, MAX(h) FROM hashes GROUP BY w)'),
    (TypeMismatch, None, 'SELECT COUNT(*) FROM (SELECT LAG(h) OVER (PARTITION BY w ORDER BY pid) AS r FROM hashes)'),
]  # fmt: skip
CASES = [*REFUSED, *OF_UNITS]
QUERIES = [sql for _kind, _words, sql in CASES]
ABOUT_UNITS = frozenset(sql for _kind, _words, sql in OF_UNITS)


def ask(sql: str, rows: int = 3, before: str = "") -> object:
    """The query to the tables that it is about, full or empty ones."""
    if sql in ABOUT_UNITS:
        return dpsql.query(units(rows), before + sql, epsilon=1, auto_bounds=False)
    return dpsql.query({"t": table() if rows else EMPTY}, before + sql, epsilon=1, auto_bounds=False, **FACTS)


# Accepted queries that an earlier version refused, and what they say of the full table.
ANSWERED: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT COUNT(*) FROM (SELECT * FROM t)", [(3,)]),
    ("WITH x AS (SELECT * FROM t) SELECT COUNT(*) FROM x", [(3,)]),
    ("SELECT COUNT(*) FROM (SELECT age AS x, r AS x FROM t) q(a, b) WHERE q.a = 90", [(3,)]),
    ("SELECT SUM(a) FROM t AS x(a, b)", [(270,)]),
    ("SELECT n + 1, s FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)", [(1, "a"), (1, "b")]),
    ("SELECT SUM(n), MAX(n), COUNT(*) FROM (SELECT b, COUNT(*) AS n FROM t GROUP BY b)", [(3, 3, 2)]),
    ("WITH x AS (SELECT SUM(r) FROM t) SELECT COUNT(*) FROM t", [(3,)]),  # it is released by nothing
    ("SELECT DISTINCT s FROM t", [("a",), ("b",)]),
    ("SELECT DISTINCT b IS TRUE AS yes FROM t", [(False,), (True,)]),
    ("SELECT SUM(CASE WHEN age > 1 THEN 1 ELSE 0 END) FROM t", [(3,)]),
    ("SELECT SUM(CASE b WHEN TRUE THEN hours END), SUM(IF(age > 1, 1, 0)) FROM t", [(297, 3)]),
    ("SELECT COUNT(*) FROM t WHERE s LIKE 'xy%'", [(3,)]),
    ("SELECT COUNT(*) FROM t WHERE s ILIKE 'XY__Y' AND s NOT LIKE 'a%' AND s ~~ '%z%'", [(3,)]),
    ("SELECT SUM(CAST(age AS INTEGER)), SUM(age::INTEGER), COUNT(TRY_CAST(s AS TINYINT)) FROM t", [(270, 270, 0)]),
    ("SELECT COUNT(*) FILTER (WHERE age > 1), COUNT(*) FILTER (WHERE age < 1), COUNT_IF(b) FROM t", [(3, 0, 3)]),
    ("SELECT SQRT(COUNT(*)), POWER(COUNT(*), 2) FROM t", [(math.sqrt(3), 9)]),
    ("SELECT SUM(SQRT(age)), SUM(POWER(age, 2)), SUM(age ^ 2) FROM t", [(3 * math.sqrt(90), 24_300, 24_300)]),
    ("SELECT COUNT(*) FROM t WHERE UPPER(s) = 'XYZZY' AND s || '!' = 'xyzzy!'", [(3,)]),
    ("SELECT COUNT(*) FROM t WHERE d > '2020-01-01' AND d > DATE '2020-01-01' AND d = d", [(3,)]),
    ("SELECT COUNT(*) FROM t WHERE EXTRACT(YEAR FROM d) = 2084 AND d + INTERVAL 1 DAY = '2084-07-03'", [(3,)]),
    ("SELECT COUNT(*) FROM t WHERE age IS DISTINCT FROM 5 AND r IS NOT DISTINCT FROM 8472.5", [(3,)]),
    ("SELECT COUNT(o), COUNT(*) FROM t WHERE o IS NOT NULL", [(3, 3)]),
    ("SELECT age // 10 * 10 AS decade, COUNT(*) FROM t WHERE age > 75 GROUP BY decade", [(70, 0), (80, 0), (90, 3)]),
    ("SELECT WITH DIFFERENTIAL_PRIVACY s, COUNT(*) FROM t GROUP BY s", [("a", 0), ("b", 0)]),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 0.1) COUNT(*) FROM t", [(3,)]),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) COUNT(*) FROM t", [(3,)]),
    ("SELECT AVG(r, contribution_bounds_per_row => (0, 9)) FROM t", [(9,)]),
    ("SELECT COUNT(*, contribution_bounds_per_group => (0, 1)) FROM t", [(3,)]),
    ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM t", [(3, 3, 3)]),
    ("SELECT COUNT(*) FROM (SELECT age FROM t UNION ALL SELECT age FROM t)", [(6,)]),
    ("SELECT COUNT(*) FROM ((SELECT age FROM t))", [(3,)]),
    ("SELECT COUNT(DISTINCT n) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)", [(1,)]),
    (
        "SELECT COUNT(DISTINCT age), APPROX_COUNT_DISTINCT(s), COUNT(DISTINCT age) FILTER (WHERE NOT b) FROM t",
        [(1, 1, 0)],
    ),
    ("SELECT MEDIAN(age), QUANTILE_CONT(age, 0.5), QUANTILE(age, 1), MIN(age), MAX(age) FROM t", [(90,) * 5]),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), MAX(age) FILTER (WHERE b) FROM t", [(90, 90)]),
    ("SELECT MEDIAN(age, epsilon => 1e8), MODE(b), MODE() WITHIN GROUP (ORDER BY age) FROM t", [(90, True, 90)]),
    ("SELECT MIN(d), MAX(d) FROM t WHERE d BETWEEN '2084-07-02' AND '2084-07-02'", [(datetime(2084, 7, 2),) * 2]),
    ("SELECT APPROX_TOP_K(age, 1) FROM t", [("[90]",)]),
]


@pytest.mark.parametrize(("sql", "expected"), ANSWERED, ids=[sql for sql, _ in ANSWERED])
def test_answered_on_a_full_table_and_an_empty_one(sql: str, expected: list[tuple[Any, ...]]):
    def shown(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [tuple(pytest.approx(cell) if type(cell) in (int, float) else cell for cell in row) for row in rows]

    found = dpsql.query({"t": table()}, sql, epsilon=LARGEST_EPSILON, auto_bounds=False, **FACTS)
    assert list(found) == shown(expected)
    empty = dpsql.query({"t": EMPTY}, sql, epsilon=LARGEST_EPSILON, auto_bounds=False, **FACTS)
    assert list(empty.to_pandas().columns) == list(found.to_pandas().columns)
    assert len(list(empty)) == len(expected)


def refusal(ask: Callable[[], object]) -> DPSQLError:
    """The error that a call raises; it has no other error behind it that could say more."""
    with pytest.raises(DPSQLError) as caught:
        ask()
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.args)
    assert MARK not in shown
    assert str(NUMBER) not in shown
    assert "2084" not in shown
    assert error.__context__ is None or error.__suppress_context__
    return error


def under_the_carets(error: DPSQLError) -> str | None:
    """The words that the carets point at."""
    lines = str(error).split("\n  ")
    for line, marks in pairwise(lines):
        if re.fullmatch(r"LINE \d+: .*", line) and re.fullmatch(r" *\^+", marks):
            return line[marks.index("^") : len(marks)]
    return None


@pytest.fixture(scope="module")
def golden() -> Iterator[dict[str, str]]:
    """Query -> refusal. With DPSQL_REGEN=1 it is filled by the tests and written at the end."""
    blocks = [] if REGEN or not GOLDEN.exists() else GOLDEN.read_text(encoding="utf-8").split("\n#### ")[1:]
    texts = {json.loads(block.split("\n", 1)[0]): block.split("\n", 1)[1].rstrip("\n") for block in blocks}
    yield texts
    if REGEN:
        found = "".join(f"\n#### {json.dumps(name)}\n{text}\n" for name, text in texts.items())
        GOLDEN.write_text(found, encoding="utf-8", newline="\n")


def matches(golden: dict[str, str], name: str, error: DPSQLError) -> None:
    found = f"{type(error).__name__}: {error}".encode("unicode_escape").decode().replace("\\n", "\n")
    if REGEN:
        golden[name] = found
    assert found == golden.get(name)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("kind", "words", "sql"), CASES, ids=QUERIES)
def test_refused_alike_on_a_full_table_and_an_empty_one(
    kind: type[DPSQLError], words: str | None, sql: str, golden: dict[str, str]
):
    error = refusal(lambda: ask(sql))
    assert type(error) is kind
    matches(golden, sql, error)
    if words is not None:
        assert under_the_carets(error) == words
    empty = refusal(lambda: ask(sql, rows=0))
    assert (type(empty), str(empty)) == (kind, str(error))


def test_a_refused_query_is_not_charged():
    tables = {"t": dpsql.Table(table(), **FACTS)}
    for named, cases in ((tables, REFUSED), (units(), OF_UNITS)):
        session = dpsql.Session(named, budget=dpsql.Budget(5), auto_bounds=False)
        session.query(f"SELECT COUNT(*) FROM {next(iter(named))}", epsilon=1)
        before = session.spent, session.ledger(), session.remaining
        for _kind, _words, sql in cases:
            asked = refusal(lambda sql=sql, session=session: session.query(sql, epsilon=1))
            explained = refusal(lambda sql=sql, session=session: session.explain(sql, epsilon=1))
            assert (type(asked), str(asked)) == (type(explained), str(explained))
        assert (session.spent, session.ledger(), session.remaining) == before


def test_explain_privacy_refuses_what_the_query_would_refuse():
    for kind, _words, sql in CASES:
        if sql.startswith("SELECT"):
            error = refusal(lambda sql=sql: ask(sql, rows=0, before="EXPLAIN PRIVACY "))
            assert type(error) is kind, sql


def test_an_error_survives_pickling():
    for sql in QUERIES[::7]:
        error = refusal(lambda sql=sql: ask(sql, rows=0))
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


def test_every_class_of_errors_is_met():
    """Save for the roots, and those of other tests."""
    unmet = {"DPSQLError", "QueryRefused"}
    classes = {
        each.__name__ for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DPSQLError)
    }
    elsewhere = {each.__name__ for each in (BudgetExceeded, LedgerError, InternalError, InvalidArgument)}
    elsewhere |= {errors.UnknownArgument.__name__}
    elsewhere |= {errors.ConfirmationRequired.__name__, errors.PostprocessFailed.__name__}
    elsewhere |= {errors.AccessDenied.__name__, errors.ServerUnavailable.__name__}
    elsewhere |= {InvalidSchema.__name__}
    assert classes - unmet - elsewhere == {kind.__name__ for kind, _words, _sql in CASES}


# Clauses are refused by their own names, and the carets are under them.


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT COUNT(*) FROM t JOIN t AS u ON t.age = u.age", "join"),
        ("SELECT COUNT(*) FROM t FULL JOIN t AS u ON t.age = u.age", "whose rows"),
        ("SELECT COUNT(*) FROM t NATURAL JOIN t AS u", "NATURAL JOIN"),
        ("SELECT COUNT(*) FROM t, LATERAL (SELECT 1)", "LATERAL"),
        ("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)", "sub-query"),
        ("SELECT COUNT(*) FROM t WHERE age IN (SELECT age FROM t)", "sub-query"),
        ("SELECT COUNT(*) FROM (SELECT age FROM t UNION SELECT age FROM t)", "UNION"),
        ("SELECT COUNT(*) FROM (SELECT age FROM t UNION ALL SELECT age, r FROM t)", "UNION ALL"),
        ("WITH RECURSIVE x AS (SELECT age FROM t) SELECT COUNT(*) FROM x", "recursive"),
        ("SELECT COUNT(*) OVER () FROM t", "window"),
        ("SELECT DISTINCT ON (s) s FROM t", "DISTINCT ON"),
        ("SELECT SUM(DISTINCT s) FROM t", "DISTINCT"),
        ("SELECT COUNT(*) FROM t WHERE age > ?", "parameters"),
        ("SELECT COUNT(*) FROM t WHERE age > $1", "parameters"),
        ("SELECT COUNT(*) FROM t USING SAMPLE 10", "SAMPLE"),
        ("SELECT COUNT(*) FROM (SELECT age FROM t ORDER BY age)", "ORDER BY"),
        ("SELECT s FROM t GROUP BY s QUALIFY COUNT(*) > 1", "QUALIFY"),
        ("SELECT * FROM t", "SELECT *"),
        ("SELECT DISTINCT * FROM t", "*"),
        ("SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t", "statements"),
        ("INSERT INTO t VALUES (1)", "INSERT"),
        ("DROP TABLE t", "DROP"),
        ("SELECT MEDIAN(DISTINCT age) FROM t", "MEDIAN"),
        ("SELECT BOOL_AND(b) FROM t", "BOOL_AND"),
        ("SELECT ANY_VALUE(age) FROM t", "ANY_VALUE"),
        ("SELECT STRING_AGG(s, ',') FROM t", "STRING_AGG"),
        ("SELECT SUM(FOO(age)) FROM t", "FOO"),
        ("SELECT RANDOM() FROM t", "RANDOM"),
        ("SELECT COUNT(*) FROM t WHERE d > CURRENT_DATE", "CURRENT_DATE"),
        ("SELECT COUNT(*) FROM read_csv('x')", "READ_CSV"),
        ("SELECT COUNT(*) FROM t FOR UPDATE", "FOR UPDATE"),
        ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT UNNEST([1, 2]) FROM t", "UNNEST"),
        ("SELECT COUNT(*) FROM t WHERE s GLOB 'a'", "GLOB"),
        ("SELECT COUNT(CAST(age AS UUID)) FROM t", "CAST of integer to UUID"),
        ("SELECT COUNT(*) FROM t LIMIT ALL", "LIMIT"),
    ],
)
def test_a_clause_is_refused_by_name(sql: str, name: str):
    error = refusal(lambda: dpsql.query({"t": EMPTY}, sql, epsilon=1, auto_bounds=False, **FACTS))
    assert name in str(error).split("\n", maxsplit=1)[0]


@pytest.mark.parametrize("sql", QUERIES)
def test_what_is_not_supported_is_named_by_a_word_of_the_text(sql: str):
    message = refusal(lambda: ask(sql, rows=0)).message
    named = re.match(r"([A-Z_]+(?: [A-Z_]+)*)(?:\(\))? (?:is|are) not supported(?: here| in ([A-Z_]+))?", message)
    for words in filter(None, named.groups() if named else ()):
        assert all(word in sql.upper() for word in words.split())


PLACELESS = {
    "SELECT *, COUNT(*) FROM (SELECT COUNT(*) AS n FROM t)": "the column is one of those that * stands for",
    "SELECT COUNT(*) FROM loose, days a, days b, days c, days d": "all joins together are too many",
    "SELECT COUNT(*) FROM visits, days a, days b, days c, days d": "all joins together are too many",
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-9, max_rows_contributed = 1000000000) COUNT(*) "
     "FROM visits"): "epsilon and the limits together make the noise too large",
}  # fmt: skip
"""Refusals that do not say where, since they are of the query as a whole."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("sql", QUERIES)
def test_a_refusal_says_where(sql: str):
    error = refusal(lambda: ask(sql, rows=0))
    nowhere = ("query is empty", "has no FROM", "nothing is counted", "the text cannot be read", "only SELECT works")
    if sql in PLACELESS:
        assert under_the_carets(error) is None
    else:
        assert under_the_carets(error) or any(words in error.message for words in nowhere)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(DISTINCT o) FROM t", "o"),
        ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT COUNT(*) OVER () FROM t", "OVER"),
        ("SELECT COUNT(*) FROM t WHERE age > :low", ":low"),
        ("SELECT COUNT(*) FROM t FOR UPDATE", "FOR"),
        ("SELECT age, COUNT(*) FROM t GROUP BY age + 1", "age"),
        ("SELECT COUNT(*) FROM t WHERE s IN ('a', 1)", "s IN ('a', 1)"),
        ("SELECT AVG(b, contribution_bounds_per_row => (0, 1)) FROM t", "b"),
    ],
)
def test_the_carets_are_under_what_is_refused(sql: str, words: str):
    error = refusal(lambda: dpsql.query({"t": EMPTY}, sql, epsilon=1, auto_bounds=False, **FACTS))
    assert words in (under_the_carets(error) or "")


@pytest.mark.parametrize(
    ("column", "sql", "written"),
    [
        ("r", "SELECT SUM(r) FROM t", "SUM(CLAMP(r, 0, 100))"),
        ("r", "SELECT AVG(r * r) FROM t", "AVG(CLAMP(r, 0, 100)"),
        ("hours r", 'SELECT SUM("hours r") FROM t', 'SUM(CLAMP("hours r", 0, 100))'),
        ("U", "SELECT SUM(U) FROM t", "SUM(CLAMP(U, 0, 100))"),
        ("r", "SELECT SUM(hours * r) FROM t", "hours * CLAMP(r, 0, 100)"),
    ],
)  # fmt: skip
def test_the_hint_of_missing_bounds_can_be_pasted(column: str, sql: str, written: str):
    data = pd.DataFrame({column: [1.5], "hours": [2]})
    error = refusal(lambda: dpsql.query({"t": data}, sql, epsilon=1, auto_bounds=False, bounds={"hours": (0, 9)}))
    assert isinstance(error, MissingBounds)
    assert written in error.hint


# Arguments.


def _q(**options: Any) -> Callable[[], object]:
    return lambda: dpsql.query(
        options.pop("data", table()), options.pop("sql", "SELECT COUNT(*) FROM t"), **{"epsilon": 1, **options}
    )


ARGUMENTS: list[Any] = [
    *(("epsilon", value, InvalidPrivacyParameter) for value in (0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, True,
        np.True_, "1", None, 1j, [1], b"1", 1e-300, 1e300, 10**400, pd.NA, np.array([1.0]))),
    *(("delta", value, InvalidPrivacyParameter) for value in (-1, 1, 1.0, 2, math.nan, math.inf, True, "1e-6",
        1e-300, 10**400, pd.NA)),
    *(("bounds", {"age": value}, InvalidSchema) for value in ((90, 17), (math.nan, 1), (0, math.nan), (0, math.inf),
        (-math.inf, 0), (5, 5), (5.0, 5), 5, (1,), (1, 2, 3), (), "ab", "AUTO", ("a", "b"), (None, 1), (True, 5), {0,
        1}, range(2), np.array([0, 1]), (0, 1j), (0, 2**63), (0.2, 0.8), (pd.NA, 1), (0, pd.Timestamp("2020")), None)),
    *(("bounds", value, InvalidSchema) for value in ({"agee": (0, 1)}, {"nope": (0, 1)}, {"age": (0, 1), "AGE": (0,
        1)}, {5: (0, 1)}, {None: (0, 1)}, "all", [1], 5, {"s": (0, 1)}, {"b": (0, 1)}, {"d": (0, 1)})),
    *(("bounds", {name: "auto"}, InvalidSchema) for name in ("s", "b", "d", "o", "nope")),
    *(("keys", {"s": value}, InvalidSchema) for value in ([], "abc", b"abc", 5, None, {"a": 1}, ["a", "a"], [None,
        None], [1], [1.5], [True], [b"a"], [["a"]], [{}], [math.nan], [math.inf], [pd.NA], [pd.NaT], range(3))),
    *(("keys", {"age": value}, InvalidSchema) for value in (["a"], [True], [1.0], [1, True], [pd.Timestamp("2020")],
        range(2 * 10**6))),
    *(("keys", value, InvalidSchema) for value in ({"sex": ["a"]}, {"s": ["a"], "S": ["a"]}, ["a"], "s", {"d": [1]},
        {1: ["a"]})),
    *(("types", value, InvalidSchema) for value in ({"r": "text"}, {"s": "datum"}, {"s": "other"}, {"s": "REAL"},
        {"s": 5}, {"s": None}, {"nope": "real"}, "real", {"d": "integer"})),
    *(("neighbours", value, InvalidArgument) for value in ("Bounded", "x", "", None, 5, True, b"bounded")),
    *(("strategy", value, InvalidArgument) for value in ("x", "", None, 5, True, [1], {})),
    *(("mechanism", value, InvalidArgument) for value in ("x", "Laplace", None, 5, [1])),
    *(("data", value, InvalidArgument) for value in (None, 5, [1], {}, {"": EMPTY}, {5: EMPTY}, {"a": 5},
        {"a": EMPTY, "A": EMPTY}, EMPTY["age"], EMPTY.to_numpy(), [EMPTY])),
    ("data", "df", InvalidSchema),  # the path of a file
    *(("sql", value, SQLSyntaxError) for value in (None, 5, 1.5, True, b"SELECT COUNT(*) FROM t",
        ["SELECT COUNT(*) FROM t"], {}, EMPTY, object)),
    *(("bounds", {"age": value}, InvalidSchema) for value in ((0, 10**400), (-(10**400), 0))),
    *(("keys", {name: [10**400]}, InvalidSchema) for name in ("age", "r")),
    ("keys", {"age": [2**70]}, InvalidSchema),
    ("keys", {"r": [2**70]}, InvalidSchema),
    ("bounds", {"age": (np.array([1, 2]), 3)}, InvalidSchema),
    ("keys", {"s": [np.array(["a", "b"])]}, InvalidSchema),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "kind"), ARGUMENTS, ids=lambda each: getattr(each, "__name__", None))
def test_a_wrong_argument_is_refused_alike_on_any_data(name: str, value: Any, kind: type[DPSQLError]):
    full = refusal(_q(**{name: value}))
    assert type(full) is kind
    if name != "data":
        empty = refusal(_q(**{"data": EMPTY, name: value}))
        assert (type(empty), str(empty)) == (kind, str(full))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("epsilon nan", {"epsilon": math.nan}),
        ("epsilon None", {"epsilon": None}),
        ("epsilon '1'", {"epsilon": "1"}),
        ("delta 1", {"delta": 1}),
        ("bounds reversed", {"bounds": {"age": (100, 0)}}),
        ("bounds equal", {"bounds": {"age": (5, 5)}}),
        ("bounds of text", {"bounds": {"s": (0, 1)}}),
        ("bounds of text to be chosen", {"bounds": {"s": "auto"}}),
        ("bounds of a near miss", {"bounds": {"agee": (0, 1)}}),
        ("a key twice", {"keys": {"s": ["a", "a"]}}),
        ("a key of another type", {"keys": {"s": [1]}}),
        ("a type that is none", {"types": {"s": "datum"}}),
        ("neighbours", {"neighbours": "x"}),
        ("Gaussian without delta", {"mechanism": "gaussian"}),
    ],
)
def test_words_of_a_wrong_argument(name: str, options: dict[str, Any], golden: dict[str, str]):
    matches(golden, f"argument: {name}", refusal(_q(data=EMPTY, **options)))


# Parameters.

LOW = "SELECT COUNT(*) FROM t WHERE age > :low"
PARAMETERS: list[tuple[str, type[DPSQLError], str, Any]] = [
    ("missing", InvalidParameter, LOW, None),
    ("missing, none given", InvalidParameter, LOW, {}),
    ("near", InvalidParameter, LOW, {"lov": 5}),
    ("of another case", InvalidParameter, LOW, {"LOW": 5}),
    ("spare", InvalidParameter, LOW, {"low": 5, "high": 7}),
    ("spare, of no text", InvalidParameter, "SELECT COUNT(*) FROM t", {"low": 5}),
    ("spare, in a comment", InvalidParameter, "SELECT COUNT(*) FROM t -- :low", {"low": 5}),
    ("spare, in a text", InvalidParameter, "SELECT COUNT(*) FROM t WHERE s = ':low'", {"low": 5}),
    ("a text for a number", TypeMismatch, LOW, {"low": "5"}),
    ("a boolean for a number", TypeMismatch, LOW, {"low": True}),
    ("a date for a number", TypeMismatch, LOW, {"low": date(2020, 1, 1)}),
    ("a number for a text", TypeMismatch, "SELECT COUNT(*) FROM t WHERE s = :low", {"low": 5}),
    ("a number for a date", TypeMismatch, "SELECT COUNT(*) FROM t WHERE d > :low", {"low": 5}),
    ("a text that is no date", TypeMismatch, "SELECT COUNT(*) FROM t WHERE d > :low", {"low": "soon"}),
    ("NaN", InvalidParameter, LOW, {"low": math.nan}),
    ("infinity", InvalidParameter, LOW, {"low": math.inf}),
    ("Decimal NaN", InvalidParameter, LOW, {"low": Decimal("nan")}),
    ("Decimal sNaN", InvalidParameter, LOW, {"low": Decimal("snan")}),
    ("Decimal infinity", InvalidParameter, LOW, {"low": Decimal("-inf")}),
    ("a huge Decimal", InvalidParameter, LOW, {"low": Decimal("1e999999")}),
    ("a huge integer", InvalidParameter, LOW, {"low": 2**128}),
    ("a very huge integer", InvalidParameter, LOW, {"low": -(10**400)}),
    ("a lone surrogate", InvalidParameter, "SELECT COUNT(*) FROM t WHERE s = :low", {"low": "a\ud800"}),
    ("a long text", InvalidParameter, "SELECT COUNT(*) FROM t WHERE s = :low", {"low": "x" * 70_000}),
    ("bytes", InvalidParameter, LOW, {"low": b"5"}),
    ("a list", InvalidParameter, "SELECT COUNT(*) FROM t WHERE age IN (:low)", {"low": [1, 2]}),
    ("a tuple", InvalidParameter, "SELECT COUNT(*) FROM t WHERE age IN :low", {"low": (1, 2)}),
    ("a set", InvalidParameter, LOW, {"low": {1}}),
    ("a mapping", InvalidParameter, LOW, {"low": {}}),
    ("complex", InvalidParameter, LOW, {"low": 1j}),
    ("pandas' NA", InvalidParameter, LOW, {"low": pd.NA}),
    ("pandas' NaT", InvalidParameter, LOW, {"low": pd.NaT}),
    ("NumPy's NaT", InvalidParameter, LOW, {"low": np.datetime64("NaT")}),
    ("NumPy's time", InvalidParameter, "SELECT COUNT(*) FROM t WHERE d > :low", {"low": np.datetime64("2020-01-01")}),
    ("a time with a zone", InvalidParameter, LOW, {"low": datetime(2084, 7, 2, tzinfo=UTC)}),
    ("a span of time", InvalidParameter, LOW, {"low": pd.Timedelta(1, "D")}),
    ("a column of values", InvalidParameter, LOW, {"low": pd.Series([5])}),
    ("an array", InvalidParameter, LOW, {"low": np.array([5])}),
    ("a function", InvalidParameter, LOW, {"low": len}),
    ("a name that is none", InvalidParameter, LOW, {"low": 5, "a b": 1}),
    ("an empty name", InvalidParameter, LOW, {"low": 5, "": 1}),
    ("a number for a name", InvalidParameter, LOW, {1: 5}),
    ("a name with its colon", InvalidParameter, LOW, {":low": 5}),
    ("a list of values", InvalidParameter, LOW, [5]),
    ("one value", InvalidParameter, LOW, 5),
    ("a text of parameters", InvalidParameter, LOW, "low=5"),
    ("as a table", SQLSyntaxError, "SELECT COUNT(*) FROM :low", {"low": "t"}),
    ("as a column", SQLSyntaxError, "SELECT COUNT(*) FROM t GROUP BY :low", {"low": "s"}),
    ("as an output", SQLSyntaxError, "SELECT COUNT(*) FROM t ORDER BY :low", {"low": 1}),
    ("as an alias", SQLSyntaxError, "SELECT COUNT(*) AS :low FROM t", {"low": "n"}),
    ("as a type", SQLSyntaxError, "SELECT COUNT(CAST(age AS :low)) FROM t", {"low": "TEXT"}),
    ("as a unit", SQLSyntaxError, "SELECT COUNT(DATE_TRUNC(:low, d)) FROM t", {"low": "month"}),
    ("as a direction", SQLSyntaxError, "SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY s :low", {"low": "DESC"}),
    ("as a limit below 0", SQLSyntaxError, "SELECT COUNT(*) FROM t LIMIT :low", {"low": -1}),
    ("as half a limit", SQLSyntaxError, "SELECT COUNT(*) FROM t LIMIT :low", {"low": 1.5}),
    ("as a limit of text", SQLSyntaxError, "SELECT COUNT(*) FROM t LIMIT :low", {"low": "1"}),
    ("as a limit that is NULL", SQLSyntaxError, "SELECT COUNT(*) FROM t LIMIT :low", {"low": None}),
    ("as an epsilon of text", SQLSyntaxError,
     "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = :low) COUNT(*) FROM t", {"low": "1"}),
    ("as a bound that is NULL", SQLSyntaxError,
     "SELECT SUM(r, contribution_bounds_per_row => (0, :low)) FROM t", {"low": None}),
    ("as a level", SQLSyntaxError, "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, :low) FROM t", {"low": 1.5}),
    ("as SQL", UnknownGroups, "SELECT city, COUNT(*) FROM t WHERE city <> :low GROUP BY city", {"low": "x' OR 'a'='a"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "sql", "params"), PARAMETERS, ids=[name for name, *_ in PARAMETERS])
def test_parameters_are_refused_alike_on_any_data(
    name: str, kind: type[DPSQLError], sql: str, params: Any, golden: dict[str, str]
):
    full = refusal(_q(sql=sql, data={"t": table()}, params=params, **FACTS))
    assert type(full) is kind
    matches(golden, f"parameter: {name}", full)
    assert str(full) == str(refusal(_q(sql=sql, data={"t": EMPTY}, params=params, **FACTS)))
    session = dpsql.Session({"t": dpsql.Table(table(), **FACTS)}, budget=dpsql.Budget(1), auto_bounds=False)
    assert str(full) == str(refusal(lambda: session.query(sql, epsilon=1, params=params)))
    assert str(full) == str(refusal(lambda: session.explain(sql, epsilon=1, params=params)))
    assert not session.ledger()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (LOW, 89),
        (LOW, np.int8(89)),
        (LOW, 89.5),
        (LOW, Decimal("89.5")),
        ("SELECT COUNT(*) FROM t WHERE age > :low OR :low IS NULL", None),
        ("SELECT COUNT(*) FROM t WHERE s = :low", MARK),
        ("SELECT COUNT(*) FROM t WHERE s LIKE :low", MARK[:2] + "%"),
        ("SELECT COUNT(*) FROM t WHERE b = :low", True),
        ("SELECT COUNT(*) FROM t WHERE :low", np.True_),
        ("SELECT COUNT(*) FROM t WHERE d = :low", date(2084, 7, 2)),
        ("SELECT COUNT(*) FROM t WHERE d = :low", pd.Timestamp("2084-07-02")),
        ("SELECT COUNT(*) FROM t WHERE d = :low", "2084-07-02"),
        ("SELECT COUNT(*) FROM t LIMIT :low", 1),
        ("SELECT COUNT(*) FROM t WHERE age IN (1, : /* so */ low)", 90),
    ],
)
def test_parameters_that_are_taken(sql: str, value: Any):
    assert answers(table(), sql, params={"low": value}, **FACTS) == [(3,)]
    assert answers(EMPTY, sql, params={"low": value}, **FACTS) == [(0,)]


def test_a_parameter_is_never_text_of_the_query():
    hostile = "a' OR b --"
    sql = "SELECT COUNT(*) FROM t WHERE s = :p OR :p IS NULL"
    assert answers(table(), sql, params={"p": hostile}) == [(0,)]
    assert answers(table(), sql, params={"p": MARK}) == [(3,)]
    assert answers(table(), sql, params={"p": None}) == [(3,)]


CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) COUNT(*) FROM t"


@pytest.mark.parametrize(
    ("options", "said", "words"),
    [
        ({"epsilon": None}, "", "epsilon"),
        ({"epsilon": None}, "delta = 1e-9", "epsilon"),
        ({"epsilon": 1}, "epsilon = 1.0000001", "above the 1 that the call allows"),
        ({"epsilon": 0.1}, "epsilon = 0.10001", "above the 0.1 that the call allows"),
        ({"epsilon": 1, "delta": 0}, "delta = 1e-300", "delta"),
        ({"epsilon": 1, "delta": 1e-6}, "delta = 2e-6", "above the 1e-06 that the call allows"),
        ({"epsilon": 1, "delta": 1e-6}, "epsilon = 2, delta = 1e-7", "above the 1 that the call allows"),
    ],
)
def test_the_text_cannot_raise_what_the_call_allows(options: dict[str, Any], said: str, words: str):
    sql = CLAUSE.format(said) if said else "SELECT COUNT(*) FROM t"
    full = refusal(_q(data={"t": table()}, sql=sql, **options))
    assert type(full) is InvalidPrivacyParameter
    assert words in str(full)
    assert str(full) == str(refusal(_q(data={"t": EMPTY}, sql=sql, **options)))


@pytest.mark.parametrize(
    ("said", "spent"),
    [
        ("epsilon = 0.25", "0.25"),
        ("epsilon = 0.5", "0.5"),
        ("epsilon = 0.6", None),
        ("epsilon = 5", None),
        ("epsilon = 0.25, delta = 1e-7", "0.25"),
        ("delta = 1e-9", "0.125"),  # nothing needs it, nothing is spent
    ],
)
def test_the_text_cannot_raise_what_a_session_allows(said: str, spent: str | None):
    tables = {"t": dpsql.Table(table(), **FACTS)}
    session = dpsql.Session(
        tables, budget=dpsql.Budget(1, 1e-6), auto_bounds=False, max_epsilon=0.5, epsilon=0.125, delta=1e-6
    )
    if spent is None:
        assert type(refusal(lambda: session.query(CLAUSE.format(said)))) is InvalidPrivacyParameter
        assert not session.ledger()
    else:
        session.query(CLAUSE.format(said))
        assert (session.spent.epsilon, session.spent.delta) == (Fraction(spent), 0)


@pytest.mark.parametrize("data", [table(), EMPTY])
def test_gaussian_noise_and_unknown_groups_need_delta(data: pd.DataFrame):
    assert type(refusal(_q(data=data, mechanism="gaussian"))) is InvalidPrivacyParameter
    assert type(refusal(_q(data=data, sql="SELECT city, COUNT(*) FROM t GROUP BY city"))) is UnknownGroups


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["a", "A"]),
        pd.DataFrame([[1, 2]], columns=["ß", "ss"]),
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
        pd.DataFrame({None: [1]}),
        pd.DataFrame({math.nan: [1]}),
        pd.DataFrame({"a\0": [1]}),
    ],
)
def test_names_of_columns_that_cannot_be_told_apart_or_written(data: pd.DataFrame):
    for each in (data, data.iloc[:0]):
        assert type(refusal(_q(data=each))) is InvalidSchema
        assert type(refusal(lambda each=each: dpsql.Session({"t": each}, budget=dpsql.Budget(1)))) is InvalidSchema
        assert type(refusal(lambda each=each: dpsql.Table(each))) is InvalidSchema


@pytest.mark.parametrize("said", [{"bounds": [1]}, {"keys": 5}, {"types": "real"}])
def test_attributes_of_a_frame_that_dpsql_did_not_write(said: dict[str, Any]):
    data = EMPTY.copy()
    data.attrs["dpsql"] = said
    assert type(refusal(_q(data=data))) is InvalidSchema


def test_facts_of_one_table_are_not_given_for_several():
    error = refusal(_q(data={"t": EMPTY, "u": EMPTY}, bounds={"age": (0, 1)}))
    assert type(error) is InvalidArgument


def test_sessions_that_cannot_be():
    for options, kind in [
        ({}, InvalidPrivacyParameter),
        ({"budget": 5}, InvalidArgument),
        ({"budget": dpsql.Budget(1), "neighbours": "x"}, InvalidArgument),
        ({"budget": dpsql.Budget(1), "accountant": "x"}, InvalidArgument),
        ({"budget": dpsql.Budget(1), "max_epsilon": 0}, InvalidPrivacyParameter),
        ({"budget": dpsql.Budget(1), "epsilon": math.nan}, InvalidPrivacyParameter),
        ({"budget": dpsql.Budget(1), "delta": 1}, InvalidPrivacyParameter),
    ]:
        assert type(refusal(lambda options=options: dpsql.Session({"t": table()}, **options))) is kind
    for tables in (5, [table()], table(), {"t": 5}):
        assert type(refusal(lambda tables=tables: dpsql.Session(tables, budget=dpsql.Budget(1)))) is InvalidArgument
    for tables in ({5: table()}, {"": table()}, {"t": table(), "T": table()}):
        assert type(refusal(lambda tables=tables: dpsql.Session(tables, budget=dpsql.Budget(1)))) is InvalidSchema
    for epsilon in (0, -1, math.nan, math.inf, True, "1", None):
        assert type(refusal(lambda epsilon=epsilon: dpsql.Budget(epsilon))) is InvalidPrivacyParameter


def test_a_query_above_the_budget_is_not_charged(golden: dict[str, str]):
    session = dpsql.Session({"t": table()}, budget=dpsql.Budget(1), auto_bounds=False, max_epsilon=5)
    session.query("SELECT COUNT(*) FROM t", epsilon=0.75)
    error = refusal(lambda: session.query("SELECT COUNT(*) FROM t", epsilon=0.5))
    assert type(error) is BudgetExceeded
    matches(golden, "budget exceeded", error)
    assert session.spent.epsilon == Fraction("0.75")
    assert len(session.ledger()) == 1
    assert type(refusal(lambda: session.query("SELECT COUNT(*) FROM t", epsilon=6))) is InvalidPrivacyParameter


def test_a_session_cannot_be_copied(golden: dict[str, str]):
    session = dpsql.Session({"t": table()}, budget=dpsql.Budget(1), auto_bounds=False)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        error = refusal(lambda act=act: act(session))
        assert type(error) is LedgerError
        matches(golden, f"session: {act.__name__}", error)


def test_a_failing_run_says_nothing_of_the_data(monkeypatch: pytest.MonkeyPatch, golden: dict[str, str]):
    def fail(_self: object, _plan: object, _key: object) -> object:
        raise ValueError(f"{MARK} {NUMBER}")

    monkeypatch.setattr(PandasExecutor, "execute", fail)
    error = refusal(_q())
    assert type(error) is InternalError
    matches(golden, "the executor fails", error)


# No rows, no columns, mixed types: answers.


def answers(data: pd.DataFrame, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    return list(dpsql.query(data, sql, **{"epsilon": 1e9, **options}))


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
def test_no_rows(neighbours: str):
    held: dict[str, Any] = {"neighbours": neighbours, **FACTS}
    one = answers(EMPTY, "SELECT COUNT(*), COUNT(r), SUM(age), AVG(age), SUM(b), SUM(CLAMP(r, 0, 1)) FROM t", **held)
    assert one == [(0, 0, 0, None, 0, pytest.approx(0, abs=1e-6))]
    assert answers(EMPTY, "SELECT s, COUNT(*) FROM t GROUP BY s", **held) == [("a", 0), ("b", 0)]
    assert answers(EMPTY, "SELECT b, SUM(age) FROM t GROUP BY b", **held) == [(False, 0), (True, 0)]
    for keys in ("city", "r", "city, r, b", "s, city"):
        assert answers(EMPTY, f"SELECT {keys}, COUNT(*) FROM t GROUP BY {keys}", delta=1e-6, **held) == []
    assert answers(EMPTY, "SELECT COUNT(*) FROM t WHERE s = 'a' OR age / 0 > 1 OR city IN ('x')", **held) == [(0,)]
    assert answers(EMPTY, "SELECT COUNT(*) FROM t HAVING COUNT(*) > 5", **held) == []


def test_no_columns():
    for rows in (0, 5):
        data = pd.DataFrame(index=range(rows))
        assert answers(data, "SELECT COUNT(*), COUNT(1), SUM(2) FROM t") == [(rows, rows, 2 * rows)]
        assert type(refusal(_q(data=data, sql="SELECT COUNT(a) FROM t"))) is UnknownColumn


def test_an_object_column_has_the_declared_type():
    data = pd.DataFrame({"o": pd.Series(["a", 1, 2.5, None, True, ["a"], "a", math.nan], dtype=object)})
    text = {"types": {"o": "text"}}
    assert answers(data, "SELECT COUNT(o), SUM(o = 'a'), COUNT(*) FROM t", **text) == [(5, 2, 8)]
    assert answers(data, "SELECT o, COUNT(*) FROM t GROUP BY o", delta=1e-9, **text) == [("a", 2), (None, 3)]
    listed = {"keys": {"o": ["1", "2.5", "a", "true"]}}
    assert answers(data, "SELECT o, COUNT(*) FROM t WHERE o IS NOT NULL GROUP BY o", **text, **listed) == [
        *(("1", 1), ("2.5", 1), ("a", 2), ("true", 1))
    ]
    assert type(refusal(_q(data=data, sql="SELECT SUM(o) FROM t", **text))) is TypeMismatch
    assert answers(data, "SELECT COUNT(o), SUM(o) FROM t", types={"o": "real"}, bounds={"o": (0, 9)}) == [
        (3, pytest.approx(4.5, abs=1e-4))
    ]


# Text that is large, deep or odd: an answer or a refusal, soon.

OPEN, CLOSE = "SELECT COUNT(*) FROM t WHERE ", ""
SLOW = 15.0


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("1 MB of a list", f"SELECT COUNT(*) FROM t WHERE age IN ({','.join(['1'] * 500_000)})"),
        ("1 MB of one word", "S" * 10**6),
        ("1 MB of blanks", " " * 10**6),
        ("10,000 parentheses", OPEN + "(" * 10_000 + "b" + ")" * 10_000),
        ("10,000 open parentheses", OPEN + "(" * 10_000),
        ("10,000 closed parentheses", OPEN + "b" + ")" * 10_000),
        ("10,000 brackets", "SELECT " + "[" * 10_000),
        ("5,000 NOTs", OPEN + "NOT " * 5_000 + "b"),
        ("5,000 minus signs", f"SELECT SUM({'- ' * 5_000}age) FROM t"),
        ("5,000 sums", f"SELECT SUM({'age + ' * 5_000}age) FROM t"),
        ("5,000 IS NULLs", OPEN + "b" + " IS NULL" * 5_000),
        ("5,000 equal signs", OPEN + "b" + " = b" * 5_000),
        ("5,000 CASEs", "SELECT " + "CASE WHEN " * 5_000),
        ("5,000 casts", f"SELECT SUM(age{'::INT' * 5_000}) FROM t"),
        ("9,000 joins", "SELECT COUNT(*) FROM t" + ", t" * 9_000),
        ("60 sub-queries", "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 60 + "t" + ")" * 60),
        ("15,000 dots", "SELECT " + "a." * 9_000 + "b FROM t"),
        ("60,000 digits", OPEN + "age > " + "9" * 60_000),
        ("60,000 quotes", "'" * 60_001),
        ("an own comment never closed", "SELECT COUNT(*) FROM t /* " + "x" * 60_000),
        ("10,001 columns", "SELECT " + "age, " * 10_000 + "age FROM t"),
    ],
)
def test_large_text_is_refused_soon(name: str, sql: str):
    start = time.process_time()
    error = refusal(_q(data=EMPTY, sql=sql, bounds=FACTS["bounds"]))
    assert isinstance(error, QueryRefused)
    assert len(str(error)) < 2_000 or name == "60,000 quotes"
    assert time.process_time() - start < SLOW


@pytest.mark.parametrize(
    ("name", "sql", "expected"),
    [
        ("4,900 ANDed terms", OPEN + " AND ".join(["age > 1"] * 4_900), 3),
        ("4,000 ORed terms", OPEN + " OR ".join(f"age = {each}" for each in range(4_000)), 3),
        ("a list of 9,900", f"{OPEN}age IN ({', '.join(map(str, range(9_900)))})", 3),
        ("a list of 1,000 sums", f"{OPEN}age IN ({', '.join(f'age + {each}' for each in range(1_000))})", 3),
        ("5,000 arguments", f"SELECT COUNT(LEAST({', '.join(['age'] * 5_000)})) FROM t", 3),
        ("9,000 keys, all the same", "SELECT COUNT(*) FROM t GROUP BY " + ", ".join(["b"] * 9_000), 0),
        ("60 KB of a comment", f"SELECT COUNT(*) /* {'x' * 60_000} */ FROM t", 3),
        ("60 KB of text", f"{OPEN}s <> '{'x' * 60_000}'", 3),
        ("30 parentheses", OPEN + "(" * 30 + "b" + ")" * 30, 3),
        ("semicolons", "SELECT COUNT(*) FROM t" + ";" * 9_000, 3),
    ],
)  # fmt: skip
def test_large_text_is_answered_soon(name: str, sql: str, expected: int):
    start = time.process_time()
    found = answers(table(), sql, bounds=FACTS["bounds"])
    assert found[0] == (expected,), name
    assert time.process_time() - start < SLOW


@pytest.mark.parametrize("count", [5_000, 10_000])
def test_chains_and_lists_beyond_the_limit_are_a_clear_error(count: int):
    for sql in (OPEN + " AND ".join(["age > 1"] * count), f"{OPEN}age IN ({', '.join(map(str, range(2 * count)))})"):
        error = refusal(_q(data=EMPTY, sql=sql))
        assert type(error) is SQLSyntaxError
        assert re.search(r"more than \d\d,000 words|longer than 65,536 characters", str(error))


def test_an_expression_is_written_in_time_that_grows_with_its_length(monkeypatch: pytest.MonkeyPatch):
    plain, calls = Call.__str__, []

    def counting(self: Call) -> str:
        calls.append(self)
        return plain(self)

    monkeypatch.setattr(Call, "__str__", counting)
    answers(EMPTY, f"SELECT SUM({' + '.join(['age'] * 12)}) FROM t", bounds=FACTS["bounds"])
    assert len(calls) < 500


def test_comments_before_a_query_are_skipped_in_time_that_grows_with_their_number():
    start = time.process_time()
    parse("/**/" * 22 + "SELECT COUNT(*) FROM t")
    assert time.process_time() - start < 0.1


def doubling(times: int) -> str:
    """CTEs each of which names the column of the one before twice."""
    tables = [f"t{i + 1} AS (SELECT a + a AS a FROM t{i})" for i in range(times)]
    return f"WITH t0 AS (SELECT age AS a FROM t), {', '.join(tables)} SELECT SUM(CLAMP(a, 0, 1)) FROM t{times}"


def nested(times: int) -> str:
    return "SELECT COUNT(*) FROM " + "(SELECT age FROM " * times + "t" + ")" * times


def named(times: int) -> str:
    tables = [f"t{i + 1} AS (SELECT age FROM t{i or ''})" for i in range(times)]
    return f"WITH {', '.join(tables)} SELECT COUNT(*) FROM t{times}"


SQUARES = " ".join(f"WHEN age = {each} THEN {each}" for each in range(200))
DEEP = [
    ("13 doublings", doubling(13), None),
    ("14 doublings", doubling(14), "an expression of more than 20,000 operations."),
    ("24 doublings", doubling(24), "an expression of more than 20,000 operations."),
    ("29 sub-queries", nested(29), None),
    ("32 sub-queries", nested(32), "more than 32 sub-queries."),
    ("31 CTEs", named(31), None),
    ("32 CTEs", named(32), "more than 32 sub-queries."),
    ("31 CTEs, none of them read", named(31).replace("FROM t31", "FROM t"), None),
    ("32 CTEs, none of them read", named(32).replace("FROM t32", "FROM t"), "more than 32 sub-queries."),
    ("a CASE of 200 arms", f"SELECT SUM(CASE {SQUARES} ELSE 0 END) FROM t", None),
    ("the same twice", f"WITH x AS (SELECT CASE {SQUARES} END AS a FROM t) SELECT SUM(a + a) FROM x", None),
]


@pytest.mark.parametrize(("name", "sql", "words"), DEEP, ids=[name for name, *_ in DEEP])
def test_depth_and_size_have_limits(name: str, sql: str, words: str | None):
    start = time.process_time()
    if words is None:
        assert len(answers(table(), sql, bounds=FACTS["bounds"])) == 1, name
    else:
        error = refusal(_q(data={"t": EMPTY}, sql=sql, **FACTS))
        assert type(error) is SQLSyntaxError
        assert error.message == words
        assert under_the_carets(error)
    assert time.process_time() - start < SLOW


def test_sixty_sums_of_sixty_ranges():
    sums = ", ".join(f"SUM(CLAMP(age, 0, {1_000_001 + 2 * each}))" for each in range(60))
    assert answers(pd.DataFrame({"age": [7]}), f"SELECT {sums} FROM t") == [pytest.approx((7,) * 60, abs=0.1)]


def test_parentheses_up_to_the_limit_are_taken():
    assert answers(table(), OPEN + "(" * MOST_NESTING + "b" + ")" * MOST_NESTING) == [(3,)]
    more = OPEN + "(" * (MOST_NESTING + 1) + "b" + ")" * (MOST_NESTING + 1)
    assert "levels of parentheses" in str(refusal(_q(sql=more)))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("''", SQLSyntaxError),
        ('""', SQLSyntaxError),
        ("SELECT COUNT(*) FROM t WHERE @", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t WHERE s IN", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t LIMIT 2 ONLY", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t *", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t AS", SQLSyntaxError),
        ("SELECT COUNT(age) FROM .t", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t WHERE age IN 5", UnsupportedSQL),
        ("SELECT COUNT(*) FROM t WHERE age IN ()", SQLSyntaxError),
        ("SELECT SUM(CASE WHEN b 1 END) FROM t", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t NATURAL", SQLSyntaxError),
        ("SELECT COUNT(*) FROM t WITH", SQLSyntaxError),
        ('SELECT age, COUNT(*) FROM t GROUP BY ""', UnknownColumn),
        ("SELECT COUNT(*) FROM t WHERE age > " + "9" * 5_000, SQLSyntaxError),
    ],
)
def test_text_that_the_parser_takes_for_something_else(sql: str, kind: type[QueryRefused]):
    error = refusal(_q(data={"t": EMPTY}, sql=sql, **FACTS))
    assert type(error) is kind
    assert "is not a number" not in str(error)


SPELT = """
    age > 5.
    age > 1_000
    age > 1E-3
    age > 007
    age = +1 AND age = - -1 AND age <> -1
    NOT (NOT age = 1)
    (age) = ((1)) AND age NOT BETWEEN 1 AND 2
    age != 1 AND age == 1 AND @age = 1
    age NOTNULL OR age ISNULL OR b IS UNKNOWN OR age NOT NULL
    s LIKE 'a' AND s NOT LIKE 'b' AND s ~~ 'a' AND NOT s ILIKE 'c' AND s NOT ILIKE 'd' ESCAPE '!'
    CASE WHEN age = 1 THEN b WHEN NOT b THEN TRUE ELSE FALSE END AND CASE age WHEN 1 THEN TRUE END AND IF(b, b, NOT b)
    CAST(age AS TEXT) = '1' AND age::VARCHAR = '1' AND TRY_CAST(s AS INT) = 1 AND CAST(r AS DECIMAL(5, 2)) = 1
    age IS DISTINCT FROM 1 AND age IS NOT DISTINCT FROM 2 AND s ^@ 'a' AND POSITION('a' IN s) = 1
    d > DATE '2020-01-01' AND d + INTERVAL 1 DAY > d - INTERVAL '2' DAYS
    d + INTERVAL '1 day' < TIMESTAMP '2020-01-01'
    EXTRACT(YEAR FROM d) = 1 AND DATE_PART('year', d) = 1 AND DATE_TRUNC('month', d) = d AND DATE_DIFF('day', d, d) = 0
    TRIM(BOTH 'x' FROM s) = TRIM(s, 'x') AND TRIM(LEADING FROM s) = LTRIM(s)
    SUBSTRING(s FROM 1 FOR 2) = SUBSTR(s, 1, 2)
    s || 'x' = CONCAT(s, 'x') AND age ^ 2 = age ** 2 AND LOG2(age) = LOG(2, age) AND LOG(10, age) = LOG10(age)
    age IN(1) AND age NOT IN/* so */(2)
    CEILING(r) = CEIL(r) AND IFNULL(age, 1) = NVL(age, 1) AND MOD(age, 2) = 1
    t.age = 1 AND "t"."AGE" = 1 AND T."age" = 1
    s = 'it''s' OR s = '' OR s = 'IN' OR s = 'FROM t *'
    TRUE and not false or null
"""


@pytest.mark.parametrize("condition", [line.strip() for line in SPELT.strip().splitlines()])
def test_no_way_of_spelling_is_taken_for_a_dropped_word(condition: str):
    dpsql.query(
        {"t": EMPTY}, f"SELECT ALL COUNT(ALL age) c FROM t WHERE {condition} ORDER BY 1 ASC NULLS LAST", epsilon=1
    )
    dpsql.query({"t": EMPTY}, f"select count(*), from T where {condition} limit 1 offset 0 -- so\n;", epsilon=1)


def test_a_number_may_begin_with_its_point():
    dpsql.query({"t": EMPTY}, "SELECT COUNT(*) FROM t WHERE r > .5", epsilon=1)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ('SELECT SUM("a b") FROM t', 'SUM("a b"): "a b" is text.'),
        ('SELECT "a b" FROM t', 'GROUP BY "a b"'),
        ('SELECT "a b", COUNT(*) FROM t GROUP BY "a b"', 'GROUP BY "a b" would reveal'),
    ],
)
def test_names_are_quoted_once(sql: str, words: str):
    data = pd.DataFrame({"a b": pd.Series(["x"], dtype="str")})
    assert words in str(refusal(_q(data={"t": data}, sql=sql)))


ODD_TEXT = ["😀", "SELECT 😀", "\ud800", "SELECT '\ud800'", "SELECT COUNT(*) FROM t WHERE \0", "\x01\x02", "\ufeff",
    "\u202e", "ＳＥＬＥＣＴ",
    "SELECT\u00a0COUNT(*)", "sel\0ect", "\\", "`", "$$", "$x$", "#", "%", "{", "}", "[", "]", "^",
    "&", "~", "|", "'", '"', "--", "/*", "*/", ";", "(", ")", ",", ".", ":", "::", "?", "!", "=", "<", ">",
    "@@"]  # fmt: skip


@pytest.mark.parametrize("sql", ODD_TEXT)
def test_odd_text_is_refused(sql: str):
    assert isinstance(refusal(_q(data={"t": EMPTY}, sql=sql)), QueryRefused)


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM t WHERE s <> '😀\0'", 'SELECT COUNT(*) AS "😀" FROM t -- \0'])
def test_odd_characters_inside_quotes_are_characters(sql: str):
    assert answers(table(), sql) == [(3,)]


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM t WHERE s <> '\ud800'", "SELECT COUNT(*) AS \udfff FROM t"])
def test_half_characters_are_refused(sql: str):
    error = refusal(_q(data={"t": EMPTY}, sql=sql))
    assert isinstance(error, SQLSyntaxError)
    assert str(error).isascii()


WORDS = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET t age r s b d COUNT SUM AVG ( ) ( ) ( ) , , * + - / // %
= <> < > AND OR NOT IN BETWEEN IS NULL TRUE FALSE LEAST GREATEST CLAMP ABS FLOOR ROUND COALESCE NULLIF 1 0 1.5 'a' "age"
AS ASC DESC NULLS FIRST LAST DISTINCT ALL CASE WHEN THEN ELSE END CAST LIKE EXISTS UNION JOIN ON USING WITH OVER
PARTITION ROWS FILTER WITHIN TABLESAMPLE QUALIFY :: : ; ? $1 :p ~ ^ & | || ! -> => [ ] { } . .. INTERVAL DATE EXTRACT
EXPLAIN PRIVACY COLUMNS EXCLUDE REPLACE PIVOT VALUES ROLLUP CUBE LATERAL UNNEST MAP STRUCT ARRAY ANY TRY_CAST MEDIAN MIN
MAX IF IIF POWER MOD DIV XOR ESCAPE SIMILAR TO GLOB CURRENT_DATE TOP FETCH ROW PERCENT FOR UPDATE SYMMETRIC ISNULL
UNKNOWN SUMMARIZE PRAGMA SET -- /* */ é 😀 0x1F 1e5 1e999 1_000 .5 5. e1 $$a$$ E'x' X'1F' N'a' 1d PRECEDING ASOF SEMI
NATURAL CROSS LEFT AT PRIOR START FINAL SAMPLE COLLATE DEFAULT INTO TABLE ZONE TIME TIMESTAMP JSON RLIKE
KEY VALUE OF DIFFERENTIAL_PRIVACY OPTIONS epsilon => DP_INTERVAL_LOW COUNT_IF DAY MONTH YEAR '1' '2020-01-01' RECURSIVE
MATERIALIZED BOTH LEADING SUBSTRING TRIM LIKE ILIKE CONCAT""".split()  # noqa: SIM905
SHAPES = ["SELECT {} FROM t", "SELECT COUNT(*) FROM t WHERE {}", "SELECT COUNT({}) FROM t",
    "SELECT age, COUNT(*) FROM t GROUP BY {}", "SELECT COUNT(*) AS n FROM t HAVING {}",
    "SELECT COUNT(*) FROM t ORDER BY {}", "SELECT COUNT(*) FROM t {}", "SELECT COUNT(*) {} FROM t",
    "SELECT COUNT(*) FROM {}", "{}", "SELECT SUM(CLAMP({}, 0, 1)) FROM t", "SELECT {} COUNT(*) FROM t"]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_words_give_an_answer_or_a_refusal(seed: int):
    rng = random.Random(seed)
    for number in range(500):
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))
        sql = rng.choice(SHAPES).format(words)
        try:
            dpsql.query(EMPTY, sql, epsilon=1, auto_bounds=False, **FACTS)
        except QueryRefused:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed must be known
            pytest.fail(f"seed {seed}, query {number}: {sql!r} raised {type(error).__name__}: {error}")


# The allow-list: every class of nodes, and every argument of each.


ALLOWED = {kind: rule.args for kind, rule in RULES.items()}


def node_classes() -> list[type[exp.Expr]]:
    """Every class that a tree can be made of (the others are marks like Predicate: no node is of them alone)."""
    found: dict[type[exp.Expr], None] = {}
    pending: list[type[exp.Expr]] = [exp.Expr]
    while pending:
        for each in pending.pop().__subclasses__():
            if each not in found:
                found[each] = None
                pending.append(each)
    return [each for each in found if issubclass(each, exp.Expression)]


def statement(node: exp.Expr) -> exp.Select:
    """A query with the node in its WHERE."""
    counted = exp.Count(this=exp.Star())
    return exp.Select(expressions=[counted], from_=exp.From(this=exp.to_table("t")), where=exp.Where(this=node))


def test_every_node_is_allowed_or_refused():
    classes = node_classes()
    assert len(classes) > 900
    assert set(ALLOWED) <= set(classes)
    for kind in classes:
        tree = statement(kind())
        if kind in ALLOWED:
            check(Statement("", tree, explain=False))
        else:
            with pytest.raises(UnsupportedSQL):
                check(Statement("", tree, explain=False))


def test_a_subclass_of_an_allowed_node_is_not_allowed_by_that():
    kind = type("Count", (exp.Count,), {})
    with pytest.raises(UnsupportedSQL):
        check(Statement("", statement(kind()), explain=False))


VALUES_OF_ARGUMENTS: tuple[Any, ...] = (
    True,
    "x",
    0,
    1,
    "",
    exp.Literal.number(1),
    [exp.Literal.number(1)],
    [None],
    ["x"],
)


def bare(kind: type[exp.Expr]) -> exp.Expr:
    """A node without arguments; a column has a name even then."""
    return exp.Column(this=exp.to_identifier("x")) if kind is exp.Column else kind()


def test_every_argument_of_an_allowed_node_is_read_or_refused():
    for kind, read in ALLOWED.items():
        assert read <= {*kind.arg_types, *(["privacy"] if kind is exp.Select else [])}, kind
        for argument in {*kind.arg_types, *read}:
            for value in VALUES_OF_ARGUMENTS:
                node = bare(kind)
                node.args[argument] = value
                if argument in read:
                    check(Statement("", statement(node), explain=False))
                else:
                    with pytest.raises(UnsupportedSQL):
                        check(Statement("", statement(node), explain=False))
        node = bare(kind)
        node.args["a_clause_of_tomorrow"] = exp.Literal.number(1)
        with pytest.raises(UnsupportedSQL):
            check(Statement("", statement(node), explain=False))


TAKEN = [
    "SELECT age AS a, COUNT(*), COUNT(s), SUM(hours), AVG(year) FROM t AS x WHERE x.b GROUP BY age",
    "SELECT age AS a FROM t GROUP BY age HAVING COUNT(*) > 1 ORDER BY a DESC NULLS FIRST, 1 LIMIT 5 OFFSET 1",
    "SELECT COUNT(*) FROM t WHERE (s = 'a' AND NOT s <> 'b' OR TRUE) AND s IN ('a') AND r BETWEEN 1 AND 2",
    'SELECT COUNT(*) FROM t WHERE "r" IS NULL',
    "SELECT COUNT(*) FROM t WHERE r < 1 AND r <= 1 AND r > 1 AND r >= 1 AND r + 1 - 2 * 3 / 4 // 5 % 6 = -r",
    "SELECT SUM(CLAMP(ABS(FLOOR(CEIL(ROUND(r, 1)))), 0, 1)), SUM(LEAST(GREATEST(COALESCE(r, 1), 0), 9)) FROM t",
    "SELECT COUNT(NULLIF(age, NULL)) FROM t",
    "SELECT DISTINCT s FROM t",
    "WITH x(a, g) AS (SELECT age, s FROM t) SELECT COUNT(*) FROM (SELECT a FROM x) AS y(c) WHERE y.c > 1",
    "SELECT g, MIN(n), MAX(n) FROM (SELECT s AS g, COUNT(*) AS n FROM t GROUP BY s) GROUP BY g",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-6) AVG(age, epsilon => 0.1) AS a FROM t",
    "SELECT SUM(age, contribution_bounds_per_row => (0, 9)), COUNT(*) FILTER (WHERE b), COUNT_IF(b) FROM t",
    "SELECT COUNT(CASE s WHEN 'a' THEN 1 ELSE 2 END), COUNT(CASE WHEN b THEN 1 END), COUNT(IF(b, 1, 2)) FROM t",
    "SELECT COUNT(CAST(r AS DECIMAL(5, 2))), COUNT(age::TEXT), COUNT(TRY_CAST(s AS DATE)) FROM t",
    "SELECT COUNT(*) FROM t WHERE d > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM t WHERE s LIKE 'a' AND s NOT LIKE 'b' AND s ILIKE 'a' AND s NOT ILIKE 'b'",
    "SELECT COUNT(*) FROM t WHERE s LIKE 'c' ESCAPE '!'",
    "SELECT COUNT(*) FROM t WHERE age IS DISTINCT FROM :a AND age IS NOT DISTINCT FROM 1",
    "SELECT COUNT(d + INTERVAL 1 DAY), COUNT(d - INTERVAL '2' HOUR), COUNT(DATE_ADD(d, INTERVAL (age) MONTH)) FROM t",
    "SELECT COUNT(EXTRACT(YEAR FROM d)), COUNT(DATE_DIFF('day', d, d)), SUM(DATE_PART('month', d)) FROM t",
    "SELECT COUNT(DATE_TRUNC('month', d)), COUNT(DATE_TRUNC('month', CAST(d AS DATE))) FROM t",
    "SELECT COUNT(YEAR(d)), SUM(QUARTER(d)), SUM(MONTH(d)), SUM(WEEK(d)), SUM(DAY(d)), SUM(HOUR(d)) FROM t",
    "SELECT SUM(MINUTE(d)), SUM(SECOND(d)), SUM(DAYOFWEEK(d)), SUM(ISODOW(d)), SUM(DAYOFYEAR(d)) FROM t",
    "SELECT SUM(DAYOFMONTH(d)), SUM(WEEKOFYEAR(d)), COUNT(EPOCH(d)) FROM t",
    "SELECT COUNT(DAYNAME(d)), COUNT(MONTHNAME(d)), COUNT(LAST_DAY(d)), COUNT(MAKE_DATE(2020, age, 1)) FROM t",
    "SELECT COUNT(TRIM(BOTH 'x' FROM s)), COUNT(LPAD(s, 9, 'x')), COUNT(RPAD(s, 9, 'x')), COUNT(s || 'x') FROM t",
    "SELECT COUNT(UPPER(LOWER(s))), COUNT(LENGTH(s)), COUNT(STRPOS(s, 'a')), COUNT(SUBSTRING(s, 1, 2)) FROM t",
    "SELECT COUNT(LEFT(s, 1)), COUNT(RIGHT(s, 1)), COUNT(REVERSE(s)), COUNT(REPEAT(s, 2)) FROM t",
    "SELECT COUNT(CONCAT(s, 'a')), COUNT(CONCAT_WS('-', s, city)), COUNT(REPLACE(s, 'a', 'b')) FROM t",
    "SELECT COUNT(*) FROM t WHERE STARTS_WITH(s, 'a') AND ENDS_WITH(s, 'a') AND CONTAINS(s, 'a')",
    "SELECT SUM(SQRT(age)), SUM(CBRT(age)), SUM(EXP(hours)), SUM(LN(age)), SUM(LOG10(age)), SUM(LOG(3, age)) FROM t",
    "SELECT SUM(SIN(age)), SUM(COS(age)), SUM(CLAMP(TAN(age), 0, 1)) FROM t",
    "SELECT SUM(POWER(age, 2)), SUM(DEGREES(age)), SUM(RADIANS(age)), SUM(PI()), SUM(SIGN(r)) FROM t",
    "SELECT SUM(TRUNC(age, 1)) FROM t",
    "SELECT VAR_POP(age), VARIANCE(age), VAR_SAMP(age), STDDEV(age), STDDEV_SAMP(age), STDDEV_POP(age) FROM t",
    "SELECT COVAR_POP(age, hours), COVAR_SAMP(age, hours), CORR(age, hours), REGR_SLOPE(age, hours) FROM t",
    "SELECT REGR_INTERCEPT(age, hours), REGR_R2(age, hours), APPROX_COUNT_DISTINCT(s), COUNT(DISTINCT s) FROM t",
    "SELECT MEDIAN(age), QUANTILE(age, 0.2), QUANTILE_CONT(age, 0.3), QUANTILE_DISC(age, 0.4) FROM t",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) FROM t",
    "SELECT MODE(s), MODE() WITHIN GROUP (ORDER BY s), APPROX_TOP_K(s, 2), MIN(age), MAX(age) FROM t",
    "SELECT s, b, COUNT(*), GROUPING(s), GROUPING_ID(s, b) FROM t GROUP BY ROLLUP (s, b)",
    "SELECT s, b, COUNT(*) FROM t GROUP BY CUBE (s, b)",
    "SELECT s, b, SUM(age) FROM t GROUP BY GROUPING SETS ((s, b), (s), ())",
    "SELECT s, WIDTH_BUCKET(age, 0, 100, 10), COUNT(), REGR_COUNT(age, hours) FROM a.b.t GROUP BY ALL ORDER BY ALL",
    "SELECT COUNT(STRFTIME(d, '%Y')), COUNT(TO_CHAR(d, 'YYYY')), COUNT(SPLIT_PART(s, 'a', 1)) FROM t",
    "SELECT COUNT(TIME_BUCKET(INTERVAL 1 DAY, d)), COUNT(DATE_BIN(INTERVAL 1 DAY, d, DATE '2020-01-01')) FROM t",
    "SELECT APPROX_QUANTILE(age, 0.5) FROM t OFFSET 1 ROW FETCH FIRST 2 ROWS ONLY",
]
WINDOWS_OF_PLACES = """
SELECT COUNT(*) FROM (
    SELECT ROW_NUMBER() OVER w AS a, RANK() OVER w, DENSE_RANK() OVER w, NTILE(2) OVER w, PERCENT_RANK() OVER w,
        CUME_DIST() OVER w FROM visits WINDOW w AS (PARTITION BY pid ORDER BY cost) QUALIFY a < 4)"""
WINDOWS_OF_VALUES = """
SELECT COUNT(*) FROM (
    SELECT LAG(cost, 2, 0) OVER (PARTITION BY pid ORDER BY cost DESC),
        LEAD(cost, 1, 0) IGNORE NULLS OVER (PARTITION BY pid),
        FIRST_VALUE(cost RESPECT NULLS) OVER (PARTITION BY pid),
        LAST_VALUE(cost) OVER (PARTITION BY pid ORDER BY cost ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING),
        SUM(cost > 1) FILTER (WHERE cost > 2) OVER (PARTITION BY pid ORDER BY cost RANGE 3 PRECEDING) FROM visits)"""
TAKEN += [
    "SELECT SKEWNESS(age), KURTOSIS(age), APPROX_QUANTILES(age, 2) FROM t WHERE s SIMILAR TO 'a' OR s RLIKE 'b'",
    "SELECT COUNT(*) FROM t WHERE REGEXP_MATCHES(s, 'a', 'i') AND REGEXP_FULL_MATCH(s, 'a', 'i')",
    "SELECT COUNT(REGEXP_EXTRACT(s, '(a)', 1, 'i')), COUNT(REGEXP_REPLACE(s, 'a', 'b', 'g')) FROM t",
    "SELECT COUNT(*) FROM t JOIN (VALUES (1)) AS v(k) ON age = k CROSS JOIN UNNEST([1, 2]) AS u(j)",
    "SELECT COUNT(*) FROM t, generate_series(1, 3, 2) AS g, range(2) AS h, (SELECT UNNEST([1, 2]) AS k) AS w",
    "SELECT COUNT(*) FROM t, UNNEST(GENERATE_DATE_ARRAY('2020-01-01', '2020-01-03', INTERVAL 1 DAY)) AS e",
    "SELECT COUNT(*) FROM t WHERE age IN UNNEST([1, 2])",
]
TAKEN_OF_UNITS = [
    "SELECT codes.code, ANY_VALUE(name) FROM visits JOIN codes ON visits.code = codes.code GROUP BY codes.code",
    "SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL BY NAME SELECT pid FROM visits)",
    "SELECT COUNT(DISTINCT p.pid) FROM people AS p INNER JOIN visits AS v ON p.pid = v.pid CROSS JOIN codes",
    "SELECT COUNT(*) FROM visits LEFT OUTER JOIN codes USING (code), people WHERE visits.pid = people.pid",
    "SELECT COUNT(*) FROM codes RIGHT JOIN visits ON codes.code = visits.code AND n > 1 AND cost > 5",
    "SELECT SUM(cost) FROM visits FULL OUTER JOIN people USING (pid)",
    "SELECT COUNT(*) FROM people JOIN visits ON people.pid = visits.pid RIGHT JOIN tests ON tests.vid = visits.vid",
    "SELECT COUNT(q.cost) FROM tests LEFT JOIN (people JOIN visits USING (pid)) AS q ON tests.vid = q.vid",
    "SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits UNION ALL (SELECT pid FROM visits))",
    "SELECT COUNT(*) FROM visits WHERE vid IN (SELECT vid FROM tests)",
    "SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT 1 FROM codes WHERE n > cost)",
    WINDOWS_OF_PLACES,
    WINDOWS_OF_VALUES,
    """SELECT COUNT(*) FROM (SELECT pid, ARG_MIN(cost, vid), ARG_MAX(cost, vid), FIRST(cost ORDER BY vid),
        LAST(cost ORDER BY vid DESC), BOOL_AND(cost > 1), BOOL_OR(cost > 1) FROM visits GROUP BY pid)""",
]
NEVER_READ = {(exp.Join, "method")}
"""Arguments that are allowed so that the binder can refuse them by name: NATURAL, ASOF and POSITIONAL JOIN."""


def test_every_allowed_node_is_handled_by_the_binder():
    met: set[type[exp.Expr]] = set()
    arguments: set[tuple[type[exp.Expr], str]] = set()
    for sql in [*TAKEN, *TAKEN_OF_UNITS]:
        if sql in TAKEN:
            dpsql.query(
                {"t": EMPTY}, sql, epsilon=1, params={"a": 1} if ":a" in sql else None, auto_bounds=False, **FACTS
            )
        else:
            dpsql.query(units(0), sql, epsilon=1, auto_bounds=False)
        for node in parse(sql).select.walk():
            met.add(type(node))
            arguments |= {(type(node), name) for name, value in node.args.items() if value not in (None, False, [])}
    assert met - set(LISTS) == set(ALLOWED)
    never = {(kind, name) for kind, names in ALLOWED.items() for name in names} - arguments
    assert never == NEVER_READ


def _catalog() -> Catalog:
    frame = pd.DataFrame(
        {
            "x": pd.array([1, 2, 3, None], dtype="Int64"),
            "s": pd.Series(["a", "b", None, "c"], dtype="str"),
            "b": pd.array([True, False, None, True], dtype="boolean"),
            "d": pd.to_datetime(["2020-01-01", None, "2021-01-01", "2022-01-01"]),
            "o": pd.to_timedelta([1, 2, 3, 4], unit="D"),
        }
    )
    said: dict[str, dict[str, Any]] = {
        "t": {"unit": "x", "max_rows": 3, "unique": ["x"]}, "u": {"unit": "x -> t.x"}, "c": {"public": True}, "r": {},
    }  # fmt: skip
    facts: dict[str, Any] = {"bounds": {"x": (0, 5)}, "keys": {"s": ["a"]}}
    tables = {name: dpsql.Table(frame, **facts, **words) for name, words in said.items()}
    schemas = resolved(tables)
    return Catalog(schemas, public=public_data({name: ColumnStore(frame, each) for name, each in schemas.items()}))


class _Trees:
    """Random trees of allowed nodes, in places where the parser would never put them.

    Lists, words and flags stand where the parser puts lists, words and flags; everything else is anything."""

    LISTS = frozenset({"expressions", "ifs", "columns", "joins", "using"})
    FLAGS = frozenset({"quoted", "desc", "nulls_first", "big_int", "ignore_nulls", "negate", "safe", "coalesce",
        "is_left", "date_part_boundary"})  # fmt: skip
    WORDS = ("day", "YEAR", "epsilon", "report_format", "p", "x", "fortnight", "contribution_bounds_per_row")
    NAMES = ("CLAMP", "clamp", "foo", "abs", "DATE_PART", "DP_INTERVAL_LOW", "PREFIX")
    SELECTS = frozenset({exp.Select, exp.Subquery, exp.With, exp.CTE, exp.Union})
    TABLES = ("t", "u", "c", "r")
    JOINS: Mapping[str, tuple[str | None, ...]] = {
        "side": ("LEFT", "RIGHT", "FULL", None, None), "kind": ("INNER", "OUTER", "CROSS", "SEMI", None, None),
        "method": ("NATURAL", "ASOF", None, None, None, None, None, None),
    }  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    LEAVES = (
        exp.column("x"), exp.column("s"), exp.column("b"), exp.column("d"), exp.column("o"), exp.column("none"),
        exp.Null(), exp.Literal.number("2"), exp.Literal.number("1.5"), exp.Literal.string("a"),
        exp.Literal.string("2020-01-01"), exp.Boolean(this=True), exp.Star(), exp.to_identifier("x"),
        exp.Count(this=exp.Star()), exp.Placeholder(this="p"), exp.Var(this="day"), exp.column("x", table="t"),
        exp.column("x", table="u"), exp.column("s", table="c"),
    )  # fmt: skip

    def leaf(self) -> exp.Expr:
        return self.rng.choice(self.LEAVES).copy()

    def node(self, depth: int) -> exp.Expr:
        kind = self.rng.choice(KINDS)
        if depth <= 0 or kind in (exp.Literal, exp.Identifier, exp.Boolean, exp.Null, exp.Star):
            return self.leaf()
        if kind is exp.Subquery and self.rng.random() < 0.5:
            value = exp.select(self.rng.choice([exp.Max, exp.Avg, exp.Count])(this=self.leaf())).from_(self.table())
            return exp.Subquery(this=value.where(self.node(depth - 1)) if self.rng.random() < 0.5 else value)
        if kind in self.SELECTS and self.rng.random() < 0.8:
            return exp.Subquery(this=self.queried(depth - 1), alias=exp.TableAlias(this=exp.to_identifier("q")))
        if kind is exp.Exists or (kind is exp.In and self.rng.random() < 0.5):
            asked = exp.Subquery(this=self.queried(depth - 1)) if self.rng.random() < 0.5 else self.select(depth - 1)
            return exp.Exists(this=asked) if kind is exp.Exists else exp.In(this=self.node(depth - 1), query=asked)
        if kind in (exp.Var, exp.Placeholder):
            return kind(this=self.rng.choice(self.WORDS))
        if kind in (exp.DataType, exp.DataTypeParam):
            return exp.DataType.build(self.rng.choice(["INT", "DECIMAL(5, 2)", "TEXT", "DATE", "UUID", "INT[]"]))
        node = kind()
        for name in sorted(ALLOWED[kind]):
            if kind.arg_types.get(name) or self.rng.random() < 0.5:
                node.set(name, self.argument(kind, name, depth))
        return node

    def argument(self, kind: type[exp.Expr], name: str, depth: int) -> Any:
        if name in self.FLAGS:
            return self.rng.choice([True, False, None])
        if kind is exp.Anonymous and name == "this":
            return self.rng.choice(self.NAMES)
        if name == "position":
            return self.rng.choice(["LEADING", "TRAILING", "BOTH", None])
        if name == "to":
            return exp.DataType.build(self.rng.choice(["INT", "DECIMAL(5, 2)", "TEXT", "DATE", "UUID", "BOOLEAN"]))
        if name == "distinct":
            return exp.Distinct()
        if kind is exp.Distinct:
            return [self.node(depth - 1)]
        if kind is exp.Join and name in self.JOINS:
            return self.rng.choice(self.JOINS[name])
        if name in self.LISTS:
            return [self.listed(kind, name, depth) for _ in range(self.rng.randint(1, 3))]
        if kind in (exp.Kwarg, exp.EQ) and name == "this" and self.rng.random() < 0.5:
            return exp.Var(this=self.rng.choice(self.WORDS))
        if name == "unit" and self.rng.random() < 0.7:
            return exp.Var(this=self.rng.choice(self.WORDS))
        if kind is exp.Filter and name == "expression":
            return exp.Where(this=self.node(depth - 1))
        if kind is NamedArguments and name == "this":
            return self.rng.choice([exp.Count(this=exp.Star()), exp.Sum(this=exp.column("x")), self.node(depth - 1)])
        return self.other(kind, name, depth)

    def other(self, kind: type[exp.Expr], name: str, depth: int) -> Any:
        if name == "unnest":  # of a list, as the parser makes it
            return exp.Unnest(expressions=[self.node(depth - 1)])
        own = self.windowed(kind, name, depth) if kind in (exp.Window, exp.WindowSpec, exp.Select) else None
        return self.node(depth - 1) if own is None else own

    def windowed(self, kind: type[exp.Expr], name: str, depth: int) -> Any:
        """What the parser puts into windows: ORDER BY, frames, names; None for other arguments."""
        ends = ("UNBOUNDED", "CURRENT ROW", exp.Literal.number(self.rng.randint(0, 2)), self.leaf())
        words = {
            "order": exp.Order(expressions=[exp.Ordered(this=self.node(depth - 1))]),
            "partition_by": [self.node(depth - 1)],
            "spec": exp.WindowSpec(kind="ROWS", start=self.rng.choice(ends), start_side="PRECEDING"),
            "alias": self.rng.choice([None, exp.to_identifier("w")]),
            "over": "OVER",
            "kind": self.rng.choice(["ROWS", "RANGE", "GROUPS"]),
            "start": self.rng.choice(ends),
            "end": self.rng.choice([None, *ends]),
            "start_side": "PRECEDING",
            "end_side": "FOLLOWING",
            "qualify": exp.Qualify(this=self.node(depth - 1)),
            "windows": [exp.Window(this=exp.to_identifier("w"), partition_by=[exp.column("x")])],
        }
        if kind is exp.Select and name not in ("qualify", "windows"):
            return None
        return words.get(name)

    def listed(self, kind: type[exp.Expr], name: str, depth: int) -> exp.Expr:
        if name == "ifs":
            return exp.If(this=self.node(depth - 1), true=self.node(depth - 1))
        if name in ("columns", "using"):
            return exp.to_identifier(self.rng.choice("xyzs"))
        if name == "joins":
            return self.join(depth)
        if kind is PrivacyClause:
            return exp.EQ(this=exp.Var(this=self.rng.choice(self.WORDS)), expression=self.node(depth - 1))
        if kind is NamedArguments:
            return exp.Kwarg(this=exp.Var(this=self.rng.choice(self.WORDS)), expression=self.node(depth - 1))
        if kind is exp.Order:
            return exp.Ordered(this=self.node(depth - 1))
        return self.node(depth - 1)

    def select(self, depth: int = 3) -> exp.Select:
        """A query with one strange clause, over the table or over another such query."""
        tree = statement(self.node(depth))
        tree.set("from_", exp.From(this=self.table()))
        slot = self.rng.choice(self.CLAUSES)
        tree.set(slot, self.clause(slot, depth))
        if slot != "where" and self.rng.random() < 0.7:
            tree.set("where", None)
        if depth and self.rng.random() < 0.2:
            tree.set("from_", exp.From(this=exp.Subquery(this=self.select(depth - 1))))
        if self.rng.random() < 0.2:
            tree.set("expressions", [exp.column("x"), exp.alias_(exp.column("s"), "g")])
        if self.rng.random() < 0.3:
            tree.set("joins", [self.join(depth) for _ in range(self.rng.randint(1, 3))])
        return tree

    def table(self) -> exp.Table:
        return exp.Table(this=exp.to_identifier(self.rng.choice(self.TABLES)))

    def queried(self, depth: int) -> exp.Expr:
        """A query, or two under UNION ALL."""
        one = self.select(max(0, depth))
        return exp.Union(this=one, expression=self.select(0), distinct=False) if self.rng.random() < 0.3 else one

    def join(self, depth: int) -> exp.Join:
        """One more table, mostly joined by something that makes sense."""
        made = exp.Join(this=self.table() if self.rng.random() < 0.9 else self.node(depth))
        for name, words in self.JOINS.items():
            made.set(name, self.rng.choice(words) if self.rng.random() < 0.3 else None)
        here, there = (exp.column("x", table=self.rng.choice(self.TABLES)) for _ in range(2))
        on: exp.Expr | None = exp.EQ(this=here, expression=there)
        if self.rng.random() < 0.5:
            on = self.rng.choice([exp.And(this=on, expression=self.leaf()), self.node(max(0, depth - 1)), None])
        made.set("on", on)
        if on is None and self.rng.random() < 0.5:
            made.set("using", [exp.to_identifier(self.rng.choice("xsz"))])
        return made

    CLAUSES = ("where", "having", "group", "order", "limit", "offset", "expressions", "from_", "with_", "privacy",
        "distinct", "joins")  # fmt: skip

    def clause(self, slot: str, depth: int) -> Any:
        if slot == "with_":
            alias = exp.TableAlias(this=exp.to_identifier("t"))
            return exp.With(expressions=[exp.CTE(this=self.select(depth - 1), alias=alias)]) if depth else None
        if slot == "privacy":
            return PrivacyClause(expressions=[self.listed(PrivacyClause, "expressions", depth)])
        if slot == "distinct":
            return exp.Distinct()
        if slot == "joins":
            return [self.join(depth)]
        node = self.node(depth)
        if slot == "expressions":
            return [node, exp.column("x")]
        if slot == "order":
            return exp.Order(expressions=[exp.Ordered(this=node)])
        if slot == "group":
            return exp.Group(expressions=[node])
        if slot in ("limit", "offset"):
            return (exp.Limit if slot == "limit" else exp.Offset)(expression=node)
        return {"where": exp.Where, "having": exp.Having, "from_": exp.From}[slot](this=node)


KINDS = sorted(ALLOWED, key=lambda kind: kind.__name__)
TREES = 400 * int(os.environ.get("DPSQL_FUZZ", "1"))


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_allowed_nodes_are_bound_or_refused(seed: int):
    trees, catalog, bound = _Trees(seed), _catalog(), 0
    params = params_of({"p": 1})
    for number in range(TREES):
        tree = trees.select()
        try:
            check(Statement("SELECT", tree, explain=False))
            query = _Binder(Statement("SELECT", tree, explain=False), catalog, params).query()
            analyse(query.plan, Neighbours.UNBOUNDED)
            bound += 1
        except QueryRefused:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed must be known
            pytest.fail(f"seed {seed}, tree {number}: {tree!r} raised {type(error).__name__}: {error}")
    assert bound
