"""The same questions through a library's session and through a connection: equal answers, errors and prices."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import (
    AccessDenied,
    DPSQLError,
    InvalidArgument,
    InvalidParameter,
    PostprocessFailed,
    QueryRefused,
    ServerUnavailable,
)
from dpsql.remote.client import RemoteSession
from dpsql.remote.wire import Wire, address_of, token_from
from tests.remote.serving import BY_COUNTRY, COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
Both = tuple[RemoteSession, dpsql.Session]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"))
    with serving_with_token(schema) as running:
        yield running


def serving_with_token(schema: Path) -> Any:
    token = token_for(schema, "ann", epsilon=50, delta=1e-6, tables="customers,orders,visits")
    schema.with_name("token").write_text(token)
    schema.with_name("token").chmod(0o600)
    return serving(schema)


@pytest.fixture(scope="module")
def both(server: Server) -> Iterator[Both]:
    """A connection, and a session of the library's on the same ledger: what one has paid for, the other has."""
    remote = dpsql.connect(server.address, token_file=server.schema.with_name("token"))
    with remote, dpsql.Session(schema=dpsql.Schema.from_toml(server.schema), analyst="ann") as local:
        yield remote, local


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    (COUNT, {}),
    (BY_COUNTRY, {}),
    ("SELECT MEDIAN(age) AS half, MAX(age) AS most FROM customers", {}),
    ("SELECT country, STDDEV(age) AS sd, CORR(age, id % 10) AS r FROM customers GROUP BY country HAVING n > 5", {}),
    ("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", {"delta": 1e-8, "epsilon": 1}),
    (
        "SELECT day, SUM(total) AS total FROM orders WHERE day < :day GROUP BY day",
        {"params": {"day": date(2026, 1, 3)}},
    ),
    ("SELECT MIN(day) AS first FROM orders", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age > (SELECT AVG(age) FROM customers)", {}),
    (
        "SELECT (SELECT COUNT(*) FROM visits WHERE seconds > 50) / (SELECT COUNT(*) FROM visits) AS share",
        {"epsilon": 1},
    ),
    (
        "SELECT country, SUM(total) AS s FROM orders JOIN customers ON customer = id GROUP BY ROLLUP (country)",
        {},
    ),
    ("SELECT COUNT(*) > 8 AS many, 'a' AS letter, COUNT(*) * 1.5 AS more FROM customers", {}),
    (f"SELECT AVG(age) AS mean FROM ({BY_COUNTRY}) AS s", {}),
    ("SELECT country, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM customers GROUP BY country", {}),
    ("SELECT (SELECT COUNT(*) FROM customers) AS p, (SELECT COUNT(*) FROM orders WHERE total > 3) AS o", {}),
    ("SELECT country, AVG(age) - (SELECT AVG(age) FROM customers) AS d FROM customers GROUP BY country", {"rho": 0.1}),
    ("SELECT COUNT(*) / (SELECT COUNT(*) FROM nobody) AS n FROM customers", {}),
    ("SELECT COUNT(*) / (SELECT COUNT(*) FROM orders) AS n FROM customers", {"epsilon": 400}),
    ("SELECT COUNT(*) / (SELECT COUNT(*) FROM orders) AS n FROM customers", {"error": 10, "epsilon": None}),
    (
        "SELECT MAKE_DATE(2000, n + (SELECT COUNT(*) FROM orders), 1) AS d FROM (SELECT COUNT(*) AS n FROM customers)",
        {},
    ),
    ("SELECT COUNT(*) AS n FROM visits WHERE seconds > :low", {"params": {"low": 3.5}}),
    ("SELECT COUNT(*) AS n FROM visits", {"epsilon": None, "rho": 0.01}),
    ("SELECT COUNT(*) AS n FROM visits", {"epsilon": None, "error": 30, "confidence": 0.9}),
    ("SELECT AVG(seconds) AS s FROM visits", {"mechanism": "laplace", "strategy": "split"}),
    ("SELECT `country`, COUNTIF(age > 30) AS n FROM customers GROUP BY country", {"dialect": "bigquery"}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age / 2 > 9", {"dialect": "postgres"}),
    ("SELECT WEEK(day) AS w, COUNT(*) FROM orders GROUP BY w", {"dialect": "mysql"}),
    ("SELECT COUNT(*) AS n FROM customers", {"dialect": "other"}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age < 10", {"epsilon": Fraction(1, 4)}),
    ("SELECT AVG(age) AS a FROM customers WHERE city = 'nowhere'", {"epsilon": Decimal("0.01")}),
    ("SELECT COUNT(*) FROM nobody", {}),
    ("SELECT agee FROM customers", {}),
    ("SELECT SUM(LENGTH(city)) AS s FROM customers", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age > :low", {"params": {"high": 1}}),
    ("SELECT COUNT(*) AS n FROM customers", {"epsilon": 400}),
    ("SELECT COUNT(*) AS n FROM customers", {"epsilon": -1}),
    ("SELECT COUNT(*) AS n FROM customers", {"epsilon": float("nan")}),
    ("SELECT COUNT(*) AS n FROM customers", {"rho": 1}),
    ("SELECT COUNT(*) AS n FROM customers", {"mechanism": "other"}),
    ("SELECT", {}),
]


def said(act: Any, sql: str, terms: dict[str, Any]) -> Any:
    """The answer, or the error as a text with its class."""
    try:
        return act(sql, **{"epsilon": 0.5, **terms})
    except PostprocessFailed as error:
        return type(error), str(error), [(each.to_text(), str(each.explanation)) for each in error.answers]
    except DPSQLError as error:
        return type(error), str(error), error.about


@pytest.mark.parametrize(("sql", "terms"), QUESTIONS)
def test_answers_are_the_librarys(both: Both, sql: str, terms: dict[str, Any]):
    remote, local = both
    for act in ("explain", "remaining_queries"):
        ours, theirs = (said(getattr(each, act), sql, terms) for each in both)
        assert str(ours) == str(theirs)
        if act == "explain" and not isinstance(ours, tuple):
            assert ours.to_dict() == plain(theirs.to_dict())
            assert ours.plan == theirs.plan
            assert str(ours.left) == str(theirs.left)
            assert ours._repr_html_() == theirs._repr_html_()
    first = said(remote.query, sql, terms)
    ours, theirs = said(remote.query, sql, terms), said(local.query, sql, terms)
    if isinstance(first, tuple):
        assert (ours, first[:2]) == (theirs, ours[:2])
        assert first[0] is PostprocessFailed or first == ours
        return
    assert ours.replayed
    assert theirs.replayed, "both are asked by one analyst, of one ledger"
    assert_alike(ours, theirs)
    pd.testing.assert_frame_equal(first.df, theirs.df)
    assert (remote.spent, remote.remaining) == (local.spent, local.remaining)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def public_names(value: Any) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def assert_alike(ours: Any, theirs: Any) -> None:
    """Every attribute and form of two answers."""
    planned = {"release", "program", "above"}  # plans, which stay where the data are
    assert public_names(theirs) - planned <= public_names(ours)
    assert {"left", "plan", "to_dict"} <= public_names(ours.explanation) & public_names(theirs.explanation)
    assert ours._simulated(0.95) == theirs._simulated(0.95)
    for frame in ("df", "intervals", "to_pandas"):
        one, other = (getattr(each, frame) for each in (ours, theirs))
        if callable(one):
            pd.testing.assert_frame_equal(one(), other())
        else:
            pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(ours.to_pandas(intervals=True), theirs.to_pandas(intervals=True))
    for word in ("notes", "warnings", "footer", "loss", "_cost_text", "bounds", "replayed", "_heading"):
        assert getattr(ours, word) == getattr(theirs, word), word
    for form in ("to_text", "to_csv", "to_json", "to_markdown", "to_html", "_repr_html_", "__repr__", "__len__"):
        assert getattr(ours, form)() == getattr(theirs, form)(), form
    assert repr(list(ours)) == repr(list(theirs))
    assert ours._table_text(most_rows=1) == theirs._table_text(most_rows=1)
    assert ours.to_arrow(intervals=True).equals(theirs.to_arrow(intervals=True))
    assert str(ours.explanation) == str(theirs.explanation)
    for one, other in zip(ours.answers, getattr(theirs, "answers", ()), strict=True):
        assert_alike(one, other)
    one, other = ours._plot_parts(0.95), theirs._plot_parts(0.95)
    assert [panel.name for panel in one[1]] == [panel.name for panel in other[1]]
    assert [list(map(float, panel.low)) for panel in one[1] if None not in panel.low] == [
        list(map(float, panel.low)) for panel in other[1] if None not in panel.low
    ]
    name = theirs.df.columns[0]
    pd.testing.assert_series_equal(ours[name], theirs[name])
    with pytest.raises(InvalidArgument, match="has no column"):
        ours["nothing"]
    with pytest.raises(InvalidArgument, match=r"level 0\.95"):
        ours.intervals(0.9)


def test_what_a_session_says_of_itself(both: Both):
    remote, local = both
    assert remote.tables == ("customers", "orders", "visits")
    assert (remote.accountant, remote.neighbours, remote.analyst) == (local.accountant, local.neighbours, "ann")
    assert remote.budget == dpsql.Budget(50, 1e-6)
    assert [(each.time, each.label, each.cost) for each in remote.ledger()] == [
        (each.time, each.label, each.cost) for each in local.ledger() if each.analyst == "ann"
    ]
    assert "token" not in repr(remote)


def test_explain_in_the_text_and_fresh_draws(both: Both):
    remote, _ = both
    assert "Protects" in str(remote.query(f"EXPLAIN PRIVACY {COUNT}", epsilon=0.1))
    before = len(remote.ledger())
    draws = {remote.query(COUNT, epsilon=0.01, fresh=True).item() for _ in range(4)}
    assert len(draws) > 1
    assert len(remote.ledger()) == before + 4


def test_what_cannot_be_sent(both: Both):
    remote, _ = both
    with pytest.raises(InvalidArgument, match="a decimal of at most 15 digits"):
        remote.query(COUNT, epsilon=Fraction(1, 3))
    for value in (float("inf"), object(), [1]):
        with pytest.raises(InvalidParameter):
            remote.query("SELECT COUNT(*) AS n FROM visits WHERE seconds > :a", epsilon=0.1, params={"a": value})
    sql = "SELECT COUNT(*) AS n FROM visits WHERE seconds > :a"
    assert remote.query(sql, epsilon=0.1, params={"a": np.int64(3)}).replayed is False
    with pytest.raises(InvalidArgument, match="True or False"):
        remote.query(COUNT, epsilon=0.1, fresh=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "http://data.example:8443",
        "http://192.168.0.1",
        "ftp://127.0.0.1",
        "https://ann:token@data.example",
        "https://data.example/?token=1",
        "https://data.example/v1",
        "data.example",
        "https://data.example:port",
        "",
        None,
    ],
)
def test_addresses_that_are_refused(url: Any):
    with pytest.raises(InvalidArgument):
        address_of(url)


def test_addresses():
    assert address_of("https://data.example:8443/") == "https://data.example:8443"
    assert address_of("http://localhost:1") == "http://localhost:1"
    assert address_of("http://[::1]:1") == "http://[::1]:1"


def test_tokens(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DPSQL_TOKEN", raising=False)
    with pytest.raises(InvalidArgument, match="there is no token"):
        token_from(None)
    monkeypatch.setenv("DPSQL_TOKEN", "dpsql-" + "0" * 64)
    with pytest.raises(AccessDenied, match="A token is needed"):
        dpsql.connect(server.address)
    file = tmp_path / "token"
    file.write_text("x")
    file.chmod(0o644)
    with pytest.raises(InvalidArgument, match="can be read by others"):
        token_from(file)
    with pytest.raises(InvalidArgument, match="no file of a token"):
        token_from(tmp_path / "none")
    monkeypatch.setenv("DPSQL_TOKEN", server.schema.with_name("token").read_text())
    with dpsql.connect(server.address) as session:
        assert session.analyst == "ann"


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DPSQL_TOKEN", "t")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        dpsql.connect("http://127.0.0.1:9")


def test_a_connection_loads_neither_engines_nor_readers():
    rooms = ("dpsql.executors", "dpsql.sources", "dpsql.sql", "duckdb")
    code = f"import sys, dpsql; dpsql.connect; print([name for name in sys.modules if name.startswith({rooms})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_pages_example_runs(server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    page = (Path(dpsql.__file__).parent.parent / "docs" / "client.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("DPSQL_TOKEN", server.schema.with_name("token").read_text())
    exec(compile(block.replace("https://data.example:8443", server.address), "client.md", "exec"), {})
    assert "n_low" in capsys.readouterr().out


class Lost:
    """A wire on which answers are lost; it notes keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def ask(self, _body: Any, key: str) -> Any:
        self.keys.append(key)
        raise ServerUnavailable("lost")


def test_a_fresh_question_whose_answer_was_lost_keeps_its_key():
    wire = Lost()
    session = RemoteSession(wire)  # type: ignore[arg-type]
    for epsilon in (0.1, 0.1, 0.2):
        with pytest.raises(ServerUnavailable):
            session.query("SELECT COUNT(*) FROM t", epsilon=epsilon, fresh=True)
    assert wire.keys[0] == wire.keys[1] != wire.keys[2]


def test_content_of_no_dpsql_server_is_unavailable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DPSQL_TOKEN", "x")
    wire = Wire("http://127.0.0.1:9", None)
    session = RemoteSession(wire)
    for content in ([1], {"columns": []}, {"columns": [{"name": 1}]}, "x", None):
        monkeypatch.setattr(wire, "ask", lambda *_, content=content: content)
        with pytest.raises(ServerUnavailable, match="speak"):
            session.query("SELECT COUNT(*) FROM t", epsilon=0.1)
    session.close()


def test_halves_of_characters_are_refused_as_by_a_library(both: Both):
    for session in both:
        with pytest.raises(QueryRefused):
            session.query("SELECT COUNT(*) FROM orders WHERE '\\ud800' = 'x", epsilon=0.1)


def test_pandas_reads_from_a_server(both: Both):
    remote, _ = both
    connection = dpsql.dbapi.connect(remote, epsilon=0.5)
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame: Any = pd.read_sql(BY_COUNTRY, connection)
    expected = remote.query(BY_COUNTRY, epsilon=0.5)
    assert expected.replayed
    assert list(frame.itertuples(index=False, name=None)) == list(expected)
