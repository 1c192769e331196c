"""PEP 249 over a session of the library's, and pandas over that."""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql import dbapi
from dpsql.errors import BudgetExceeded, InvalidArgument, UnknownColumn, UnsupportedSQL

SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex"


@pytest.fixture
def session() -> dpsql.Session:
    frame = pd.DataFrame({"sex": ["f", "m"] * 50, "age": range(100), "born": [date(2000, 1, 1)] * 100})
    table = dpsql.Table(frame, bounds={"age": (0, 100)}, keys={"sex": ["f", "m"]})
    return dpsql.Session({"people": table}, budget=dpsql.Budget(3))


def test_a_cursor_has_the_rows_of_the_answer(session: dpsql.Session):
    with dbapi.connect(session, epsilon=1) as connection, connection.cursor() as cursor:
        assert cursor.execute(SQL) is cursor
        names, kinds, *_ = zip(*cursor.description or (), strict=True)
        assert names == ("sex", "n", "a")
        assert kinds[0] == dbapi.STRING
        assert kinds[1] == dbapi.NUMBER == kinds[2]
        assert kinds[1] != dbapi.DATETIME
        assert cursor.rowcount == 2
        expected = list(session.query(SQL, epsilon=1))
        assert cursor.fetchone() == expected[0]
        assert cursor.fetchmany(5) == expected[1:]
        assert (cursor.fetchone(), cursor.fetchall(), cursor.fetchmany()) == (None, [], [])
        assert list(cursor.execute(SQL)) == expected
        assert session.spent.epsilon == 1, "it is asked as ever: the same again is free"
        assert len(cursor.result.intervals()) == 2
        connection.commit()
        connection.rollback()
        assert session.spent.epsilon == 1


def test_pandas_reads_by_it(session: dpsql.Session):
    connection = dbapi.connect(session, epsilon=1)
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame: Any = pd.read_sql(f"{SQL.replace('GROUP', 'WHERE age > :low GROUP')}", connection, params={"low": 20})
    assert list(frame.columns) == ["sex", "n", "a"]
    assert frame["n"].dtype.kind == "i"
    assert frame["sex"].tolist() == ["f", "m"]
    with pytest.warns(UserWarning, match="SQLAlchemy"), pytest.raises(UnknownColumn, match="agee"):
        pd.read_sql("SELECT AVG(agee) FROM people", connection)


def test_errors_are_the_librarys(session: dpsql.Session):
    cursor = dbapi.connect(session, epsilon=2).cursor()
    with pytest.raises(dbapi.ProgrammingError) as caught:
        cursor.execute("SELECT AVG(agee) FROM people")
    assert isinstance(caught.value, UnknownColumn)
    cursor.execute("SELECT COUNT(*) FROM people")
    with pytest.raises(dbapi.DatabaseError) as beyond:
        cursor.execute("SELECT COUNT(*) FROM people WHERE age > 3")
    assert isinstance(beyond.value, BudgetExceeded)
    with pytest.raises(InvalidArgument, match="nothing was asked"):
        cursor.fetchall()
    with pytest.raises(InvalidArgument, match="have names"):
        cursor.execute("SELECT COUNT(*) FROM people", [1])
    with pytest.raises(UnsupportedSQL, match="pay for each"):
        cursor.executemany("SELECT 1", [])
    assert session.spent.epsilon == 2


def test_what_is_closed_asks_nothing(session: dpsql.Session):
    connection = dbapi.connect(session, epsilon=1)
    cursor = connection.cursor()
    connection.close()
    for act in (connection.cursor, connection.commit, lambda: cursor.execute(SQL)):
        with pytest.raises(InvalidArgument, match="closed"):
            act()
    other = dbapi.connect(session, epsilon=1).cursor()
    other.close()
    with pytest.raises(InvalidArgument, match="closed"):
        other.execute(SQL)
    assert session.spent.epsilon == 0
    with pytest.raises(InvalidArgument, match="made of a session"):
        dbapi.connect("people.csv")  # type: ignore[arg-type]


def test_explanations_are_lines_of_text(session: dpsql.Session):
    cursor = dbapi.connect(session, epsilon=1).cursor().execute(f"EXPLAIN PRIVACY {SQL}")
    assert cursor.description is not None
    assert cursor.description[0][:2] == ("explanation", "text")
    assert "Protects" in cursor.fetchall()[0][0]
    assert session.spent.epsilon == 0


def test_times_of_day_and_ticks():
    assert dbapi.TimeFromTicks(0) == dbapi.TimestampFromTicks(0).time()
    assert dbapi.DateFromTicks(0) == dbapi.TimestampFromTicks(0).date()
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "named")
    assert len({dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME, dbapi.BINARY, dbapi.ROWID}) == 5
