"""The same questions through every door: library, connection, prompt, notebook, PEP 249, HTTP, Arrow and pages. Equal
answers, equal errors, equal prices."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import dpsql
from dpsql.errors import DPSQLError, InvalidArgument, QueryRefused
from dpsql.remote.client import RemoteSession
from dpsql.shell.cli import main
from dpsql.shell.notebook.magic import Magic
from tests.remote.serving import BY_COUNTRY, COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
WINDOW = "SELECT country, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM customers GROUP BY country"
QUESTIONS = (
    COUNT,
    BY_COUNTRY,
    WINDOW,
    "SELECT day, SUM(total) AS total FROM orders WHERE day BETWEEN '2026-01-01' AND '2026-01-03' GROUP BY day",
)
REFUSED = ("SELECT SUM(agee) FROM customers", "SELECT age FROM customers", "SELECT COUNT(*) FROM visits", "SELECT")
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"))
    token = token_for(schema, "ann", epsilon=50, delta=1e-6, tables="customers,orders")
    schema.with_name("token").write_text(token)
    schema.with_name("token").chmod(0o600)
    with serving(schema) as running:
        yield running


@pytest.fixture
def token(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DPSQL_TOKEN", server.schema.with_name("token").read_text())
    return server.schema.with_name("token").read_text()


@pytest.fixture
def remote(server: Server, token: str) -> Iterator[RemoteSession]:
    with dpsql.connect(server.address) as session:
        yield session


@pytest.fixture(scope="module")
def visit(server: Server) -> Iterator[httpx.Client]:
    """Signed in on the pages."""
    with httpx.Client(base_url=server.address, headers={"Origin": server.address}, timeout=60) as client:
        signed = client.post("/sign-in", data={"token": server.schema.with_name("token").read_text()})
        assert signed.status_code == 303
        yield client


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def asked_on_a_page(visit: httpx.Client, sql: str) -> httpx.Response:
    """See the price, then ask as the page says."""
    priced = visit.post("/price", data={"sql": sql, "epsilon": "0.5"})
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', priced.text))
    return visit.post("/ask", data={"sql": sql, "epsilon": "0.5", **fields}, follow_redirects=True)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_answers_are_equal(
    server: Server, token: str, remote: RemoteSession, visit: httpx.Client, sql: str, capsys: pytest.CaptureFixture[str]
):
    """The first door pays; all others give the same again."""
    pyarrow = pytest.importorskip("pyarrow")
    quote = remote.quote(sql, epsilon=0.5)
    assert not quote.cost.free
    before = remote.spent
    answer = remote.query(sql, epsilon=0.5)
    assert remote.spent.epsilon - before.epsilon == quote.cost.epsilon == answer.loss.epsilon
    expected = rows_of(answer.to_csv())
    with dpsql.Session(schema=dpsql.Schema.from_toml(server.schema), analyst="ann") as local:
        assert local.quote(sql, epsilon=0.5) == remote.quote(sql, epsilon=0.5)
        assert rows_of(local.query(sql, epsilon=0.5).to_csv()) == expected
        for session in (local, remote):
            cursor = dpsql.dbapi.connect(session, epsilon=0.5).cursor().execute(sql)
            assert cursor.fetchall() == list(answer)
    assert main(["--connect", server.address, "--epsilon", "0.5", "-c", sql]) == 0
    assert rows_of(capsys.readouterr().out) == expected
    magic = Magic({})
    magic.line(f"connect {server.address}")
    shown: Any = magic.line(f"--epsilon 0.5 {sql}")
    assert rows_of(shown.to_csv()) == expected
    magic._notebook.close()
    stream = server.send(
        "POST",
        "/v1/queries",
        token,
        headers={"Idempotency-Key": f"arrow-{len(sql)}", "Accept": ARROW},
        json={"sql": sql, "epsilon": 0.5},
    )
    assert stream.headers["content-type"] == ARROW
    assert pyarrow.ipc.open_stream(stream.content).read_all().equals(answer.to_arrow(intervals=True))
    page = asked_on_a_page(visit, sql)
    assert rows_of(visit.get(f"{page.url.path}/answer.csv").text) == expected
    assert visit.get(f"{page.url.path}/answer.json").json() == [
        dict(zip(answer.df, row, strict=True)) | ends for row, ends in zip_ends(answer)
    ]
    assert remote.spent.epsilon - before.epsilon == quote.cost.epsilon, "it was paid once"


def zip_ends(answer: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Each row as JSON has it, and the ends of its intervals."""
    columns = answer._export_columns(0.95)
    cells = [
        dict(zip((each.name for each in columns), row, strict=True))
        for row in zip(*(each.cells for each in columns), strict=True)
    ]
    texts = [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in cells
    ]
    return [((row[name] for name in answer.df), row) for row in texts]


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_are_equal(
    server: Server, token: str, remote: RemoteSession, visit: httpx.Client, sql: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(DPSQLError) as refused:
        remote.query(sql, epsilon=0.5)
    text = str(refused.value)
    assert refused.value.span is None or "^" in text
    magic = Magic({})
    magic.line(f"connect {server.address}")
    for act in (
        lambda: remote.quote(sql, epsilon=0.5),
        lambda: remote.rehearse(sql, epsilon=0.5),
        lambda: list(remote.quotes([COUNT, sql], epsilon=0.5)),
        lambda: dpsql.dbapi.connect(remote, epsilon=0.5).cursor().execute(sql),
        lambda: magic.cell("--epsilon 0.5", sql),
    ):
        with pytest.raises(type(refused.value)) as again:
            act()
        assert str(again.value) == text
    magic._notebook.close()
    assert main(["--connect", server.address, "--epsilon", "0.5", "-c", sql]) == 1
    assert text.splitlines()[0] in capsys.readouterr().err
    for path in ("/price", "/ask", "/rehearse"):
        page = visit.post(path, data={"sql": sql, "epsilon": "0.5"})
        assert page.status_code == 400
        shown = html.unescape(page.text)
        assert refused.value.message in shown
        assert refused.value.span is None or refused.value.span.caret() in shown
        assert type(refused.value).__name__ in shown


def test_lists_of_prices_and_rehearsals_are_the_librarys(server: Server, remote: RemoteSession):
    asked = ["SELECT COUNT(*) AS lists FROM customers", "SELECT AVG(age) AS lists FROM customers"]
    asked += [asked[0], "SELECT COUNT(*) AS lists FROM orders"]
    with dpsql.Session(schema=dpsql.Schema.from_toml(server.schema), analyst="ann") as local:
        theirs = list(local.quotes(asked, epsilon=0.25))
        assert list(remote.quotes(asked, epsilon=0.25)) == theirs
        assert [each.cost.free for each in theirs] == [False, False, True, False]
        assert len(remote.quotes(asked, epsilon=40)) == len(list(local.quotes(asked, epsilon=40))) == 2
        for table, other in zip(remote.catalog.tables.values(), list(local.catalog.tables.values())[:2], strict=True):
            assert [(each.name, each.type, each.bounds, each.keys) for each in table.columns] == [
                (each.name, each.type, each.bounds, each.keys) for each in other.columns
            ]
    before = remote.spent
    rehearsed = remote.rehearse(BY_COUNTRY, epsilon=0.5)
    made_up = dpsql.owner.rehearse(dpsql.Schema.from_toml(server.schema))
    assert rehearsed.to_csv().splitlines()[0] == made_up.query(BY_COUNTRY, epsilon=0.5).to_csv().splitlines()[0]
    assert "MADE-UP ROWS" in rehearsed.to_text()
    assert remote.spent == before


def test_the_prompts_commands_work_over_a_connection(server: Server, token: str, capsys: pytest.CaptureFixture[str]):
    connect = ["--connect", server.address, "--epsilon", "0.1"]
    assert main([*connect, "-c", "SHOW TABLES", "-c", "DESCRIBE orders", "--mode", "box"]) == 0
    said = capsys.readouterr().out
    assert "unit customer -> customers.id, at most 5 rows" in said
    assert "from 0 to 80" in said
    assert main([*connect, "--dry-run", "-c", COUNT]) == 0
    assert "Guarantee" in capsys.readouterr().out
    assert main([*connect[:2], "--epsilon", "60", "-c", COUNT]) == 3
    assert main([*connect[:2], "--epsilon", "30", "-c", COUNT]) == 4
    assert main([*connect, "--max-epsilon", "0.05", "-c", "SELECT COUNT(*) AS other FROM customers"]) == 1
    for words in (["--schema", "x.toml"], ["x.csv"], ["--budget", "3"], ["--engine", "duckdb"], ["--no-ledger"]):
        assert main([*connect, *words, "-c", COUNT]) == 2
    assert main(["--token-file", "x", "x.csv", "-c", COUNT]) == 2
    capsys.readouterr()


def test_a_notebook_keeps_a_server_until_it_is_told_otherwise(
    server: Server, token: str, remote: RemoteSession, capsys: pytest.CaptureFixture[str]
):
    magic = Magic({"session": remote})
    shown: Any = magic.line(f"--epsilon 0.1 {COUNT}")
    assert len(shown) == 1, "a connection in a variable is asked as a Session is"
    magic.line(f"connect {server.address}")
    magic.line("tables")
    magic.line("ledger")
    said = capsys.readouterr().out
    assert f"of {server.address}, for ann" in said
    assert "customers" in said
    with pytest.raises(InvalidArgument, match="owner"):
        magic.line("add people")
    magic.line("connect session")
    capsys.readouterr()
    with pytest.raises(InvalidArgument, match="no name, token or query"):
        magic.line("connect https://user:secret@data.example")
    with pytest.raises(QueryRefused):
        magic.line("--epsilon 0.1 SELECT age FROM customers")


def test_forms_of_answers_are_what_is_asked_for(server: Server, token: str):
    for accept, form in (
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        (f"{ARROW};q=0.5, application/json;q=0.4", ARROW),
        (f"{ARROW}, application/json;q=0", ARROW),
        (f"{ARROW};q=0, */*", "application/json"),
    ):
        headers = {"Idempotency-Key": "forms", "Accept": accept}
        answer = server.send("POST", "/v1/queries", token, headers=headers, json={"sql": COUNT, "epsilon": 0.5})
        assert (answer.status_code, answer.headers["content-type"]) == (200, form)
    for path in ("/v1/budget", "/v1/tables"):
        assert server.send("GET", path, token, headers={"Accept": ARROW}).status_code == 406
    headers = {"Idempotency-Key": "form-6", "Accept": ARROW}
    refused = server.send("POST", "/v1/queries", token, headers=headers, json={"sql": "SELECT", "epsilon": 0.5})
    assert refused.headers["content-type"] == "application/problem+json"
    rehearsed = server.send(
        "POST", "/v1/rehearsals", token, headers={"Accept": ARROW}, json={"sql": COUNT, "epsilon": 0.5}
    )
    assert rehearsed.headers["content-type"] == ARROW
