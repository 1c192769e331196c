"""The server from outside: what analysts are told, and what they are not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

import dpsql
from dpsql.core.ledger.file import open_ledger
from dpsql.errors import DPSQLError
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from dpsql.shell.cli import main
from tests.remote.serving import BY_COUNTRY, COUNT, PLANTED, Server, serving, shop, token_for

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.xdist_group("server")
SEEN: set[tuple[str, str, int]] = set()
"""Method, path and status of every answer that was seen."""


class Noting(Server):
    """Notes which statuses were seen."""

    def send(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        response = super().send(method, path, token, **more)
        known = path if not path.startswith("/v1/queries/") else "/v1/queries/{id}"
        SEEN.add((method, known, response.status_code))
        return response


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"))
    access.ledger_of(Schema.from_toml(schema)).close()
    with serving(schema) as plain:
        yield Noting(plain.schema, plain.address, plain.process, plain.log)


@pytest.fixture(scope="module")
def ann(server: Server) -> str:
    return token_for(server.schema, "ann")


@pytest.fixture(scope="module")
def bob(server: Server) -> str:
    return token_for(server.schema, "bob", tables="visits")


def test_an_answer_is_paid_once_for_its_key(server: Server, ann: str):
    first = server.ask(ann, BY_COUNTRY, "mine", epsilon=0.5)
    assert first.status_code == 200
    body = first.json()
    assert [each["name"] for each in body["columns"]] == [
        "country", "n", "n_low", "n_high", "age", "age_low", "age_high"
    ]  # fmt: skip
    assert body["loss"]["epsilon"] == "1/2"
    spent = server.send("GET", "/v1/budget", ann).json()["spent"]["epsilon"]
    assert server.ask(ann, BY_COUNTRY, "mine", epsilon=0.5).content == first.content
    assert server.send("GET", f"/v1/queries/{body['id']}", ann).content == first.content
    again = server.ask(ann, BY_COUNTRY, epsilon=0.5).json()
    assert again["replayed"]
    assert again["columns"] == body["columns"]
    fresh = server.ask(ann, BY_COUNTRY, epsilon=0.25, fresh=True).json()
    assert not fresh["replayed"]
    after = server.send("GET", "/v1/budget", ann).json()["spent"]["epsilon"]
    assert Fraction(after) == Fraction(spent) + Fraction(1, 4)
    answers = server.send("GET", "/v1/answers", ann).json()["answers"]
    assert [each["sql"] for each in answers] == [BY_COUNTRY, BY_COUNTRY]


def library_says(schema: Path, sql: str, **terms: Any) -> dict[str, Any]:
    """What a session of the library's says of a query that it refuses."""
    session = dpsql.Session(schema=dpsql.Schema.from_toml(schema), budget=dpsql.Budget(10, 1e-6), ledger=False)
    with pytest.raises(DPSQLError) as caught, session:
        session.query(sql, **{"epsilon": 0.01, **terms})
    error = caught.value
    caret = None if error.span is None else error.span.caret()
    return {"title": type(error).__name__, "detail": error.message, "hint": error.hint, "caret": caret}


REFUSED = {
    "SELECT agee FROM customers": {},
    "SELECT AVG(agee) FROM customers": {},
    "SELECT COUNT(*) FROM": {},
    "SELECT city, COUNT(*) FROM customers GROUP BY city": {},
    "SELECT SUM(LENGTH(city)) FROM customers": {},
    "SELECT COUNT(*) FROM customers WHERE age > :low": {},
    "SELECT RANK() OVER (ORDER BY age) FROM customers": {},
    "SELECT COUNT(*) AS n FROM orders": {"epsilon": 0},
    "SELECT COUNT(*) AS m FROM orders": {"epsilon": 1e-12},
    "SELECT COUNT(*) AS o FROM orders": {"mechanism": "none"},
    "SELECT COUNT(*) AS p FROM orders": {"rho": 0.1},
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_are_the_librarys(server: Server, ann: str, tmp_path: Path, sql: str):
    response = server.ask(ann, sql, **REFUSED[sql])
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    alone = shop(tmp_path).read_text().split("[tables.visits]")[0]
    (tmp_path / "alone.toml").write_text(alone.replace('grid = "off"', ""))
    expected = library_says(tmp_path / "alone.toml", sql, **REFUSED[sql])
    assert {word: said[word] for word in expected} == expected
    assert said["charged"] is False


def test_a_price_beyond_the_share_is_422(server: Server, ann: str):
    response = server.ask(ann, epsilon=11)
    assert response.status_code == 422
    assert response.json()["title"] == "BudgetExceeded"
    assert 'left for analyst "ann"' in response.json()["detail"]


def test_what_costs_nothing(server: Server, ann: str):
    before = server.send("GET", "/v1/budget", ann).json()
    query = {"sql": COUNT, "epsilon": 0.3}
    explained = server.send("POST", "/v1/explanations", ann, json=query).json()
    assert explained["text"].startswith("Protects   one person (unit id)")
    price = server.send("POST", "/v1/prices", ann, json={"queries": [query, query]}).json()["prices"]
    assert [each["cost"]["epsilon"] for each in price] == ["3/10", "3/10"]
    assert server.send("POST", "/v1/remaining", ann, json=query).json()["queries"] > 1
    rehearsed = server.send("POST", "/v1/rehearsals", ann, json=query).json()
    assert rehearsed["heading"] == "MADE-UP ROWS"
    names = [each["name"] for each in server.send("GET", "/v1/tables", ann).json()["tables"]]
    assert names == ["customers", "orders"]
    assert server.send("GET", "/v1/budget", ann).json() == before
    refusal = server.ask(ann, f"EXPLAIN PRIVACY {COUNT}")
    assert (refusal.status_code, refusal.json()["about"]) == (400, {"ask": "explain"})


def test_a_table_that_is_not_ones_own_is_as_if_it_were_not_there(server: Server, ann: str, bob: str):
    for path in ("/v1/queries", "/v1/explanations", "/v1/rehearsals"):

        def said(name: str, path: str = path) -> dict[str, Any]:
            body = {"sql": f"SELECT COUNT(*) AS n FROM {name}", "epsilon": 0.01}
            key = {"Idempotency-Key": f"{path}{name}"}
            response = server.send("POST", path, bob, headers=key, json=body)
            assert response.status_code == 400
            return {**response.json(), "id": ""}

        there, nowhere = said("customers"), said("kustomers")
        assert json.dumps(there).replace("customers", "kustomers") == json.dumps(nowhere)
        assert "visits" in there["hint"]
    assert [each["name"] for each in server.send("GET", "/v1/tables", bob).json()["tables"]] == ["visits"]


def test_nobody_sees_anothers_queries(server: Server, ann: str, bob: str):
    before = [server.send("GET", path, bob).content for path in ("/v1/budget", "/v1/answers")]
    price = {"queries": [{"sql": "SELECT AVG(seconds) AS s FROM visits", "epsilon": 1}]}
    priced = server.send("POST", "/v1/prices", bob, json=price).content
    answer = server.ask(ann, key="shared-key").json()
    assert server.send("GET", f"/v1/queries/{answer['id']}", bob).status_code == 404
    own = server.ask(bob, "SELECT COUNT(*) AS n FROM visits", key="shared-key")
    assert own.status_code == 200, "keys of two analysts are two keys"
    entries = json.loads(server.send("GET", "/v1/answers", bob).content)["answers"]
    assert [each["sql"] for each in entries] == ["SELECT COUNT(*) AS n FROM visits"]
    assert server.send("POST", "/v1/prices", bob, json=price).status_code == 200
    assert b'"epsilon":"0"' in before[0]
    assert before[1] == b'{"answers":[],"next":null}'
    assert b'"admitted":true' in priced


KEY = {"Idempotency-Key": "k"}
QUERY = {"sql": COUNT, "epsilon": 0.01}


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (400, {"json": QUERY}),
        (400, {"headers": {"Idempotency-Key": "x" * 65}, "json": QUERY}),
        (400, {"headers": KEY, "json": [QUERY]}),
        (400, {"headers": KEY, "json": {"epsilon": 1}}),
        (400, {"headers": KEY, "json": {**QUERY, "bounds": {"age": [0, 1]}}}),
        (400, {"headers": KEY, "json": {**QUERY, "epsilon": True}}),
        (400, {"headers": KEY, "json": {**QUERY, "epsilon": "1"}}),
        (400, {"headers": KEY, "json": {**QUERY, "params": [1]}}),
        (400, {"headers": KEY, "json": {**QUERY, "params": {"a": {"path": "/etc/passwd"}}}}),
        (400, {"headers": {**KEY, "Content-Type": "application/json"}, "content": b'{"sql": NaN}'}),
        (400, {"headers": {**KEY, "Content-Type": "application/json"}, "content": b'{"sql": "a", "sql": "b"}'}),
        (400, {"headers": {**KEY, "Content-Type": "application/json"}, "content": b"[" * 60_000}),
        (400, {"headers": {**KEY, "Content-Type": "application/json"}, "content": b"\xff"}),
        (403, {"headers": {**KEY, "Origin": "https://elsewhere.example"}, "json": QUERY}),
        (406, {"headers": {**KEY, "Accept": "text/html"}, "json": QUERY}),
        (413, {"headers": KEY, "json": {**QUERY, "sql": "x" * 70_000}}),
        (415, {"headers": {**KEY, "Content-Type": "text/plain"}, "content": b"{}"}),
        (415, {"headers": {**KEY, "Content-Type": "application/json", "Content-Encoding": "gzip"}, "content": b""}),
        (421, {"headers": {**KEY, "Host": "elsewhere.example"}, "json": QUERY}),
        (431, {"headers": {**KEY, "X-Long": "x" * 17_000}, "json": QUERY}),
    ],
)
def test_what_is_no_request_is_refused(server: Server, ann: str, status: int, more: dict[str, Any]):
    response = server.send("POST", "/v1/queries", ann, **more)
    assert response.status_code == status
    assert response.headers["cache-control"] == "no-store"
    assert response.json()["status"] == status


def test_methods_paths_and_conflicts(server: Server, ann: str):
    assert server.send("DELETE", "/v1/budget", ann).status_code == 405
    assert server.send("GET", "/v1/other", ann).status_code == 404
    assert server.send("GET", "/v1/queries/" + "0" * 32, ann).status_code == 404
    assert server.ask(ann, key="one").status_code == 200
    assert server.ask(ann, key="one", epsilon=0.02).status_code == 409
    assert server.send("GET", "/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "path", ["/v1/budget", "/v1/budget/", "/v1/tables", "/v1/answers", "/v1/queries/1", "/v1/other", "/other"]
)
def test_without_a_token_there_is_nothing(server: Server, path: str, ann: str):
    wrong = ann[:-1] + ("0" if ann[-1] != "0" else "1")
    for token in (None, "", "x", wrong, ann.upper(), "dpsql-" + "0" * 64):
        response = server.send("GET", path, token)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert {**response.json(), "id": ""} == {**server.send("GET", "/v1/budget").json(), "id": ""}


def test_tokens_end(server: Server):
    schema = Schema.from_toml(server.schema)
    first = token_for(server.schema, "eve", epsilon=1)
    assert server.send("GET", "/v1/budget", first).status_code == 200
    second = access.rotate(schema, "eve")
    assert server.send("GET", "/v1/budget", first).status_code == 401
    assert server.send("GET", "/v1/budget", second).status_code == 200
    third = access.rotate(schema, "eve", days=0.00001)
    time.sleep(1)
    assert server.send("GET", "/v1/budget", third).status_code == 401
    with closing(access.ledger_of(schema)) as ledger:
        assert access.token_hash(third) in ledger.ended_tokens, "a clock put back does not wake it"
    fourth = access.rotate(schema, "eve", days=1)
    assert server.send("GET", "/v1/budget", fourth).status_code == 200
    access.revoke(schema, "eve")
    assert server.send("GET", "/v1/budget", fourth).status_code == 401


def raw(server: Server, *parts: bytes) -> bytes:
    """What a connection gets for bytes as they are."""
    with socket.create_connection(server.host, 20) as connection:
        for part in parts:
            connection.sendall(part)
        received = b""
        try:
            while more := connection.recv(65536):
                received += more
        except ConnectionError:
            pass
        return received


def test_odd_requests_end_with_4xx(server: Server, ann: str):
    host = b"Host: %s:%d\r\n" % (server.host[0].encode(), server.host[1])
    start = b"POST /v1/queries HTTP/1.1\r\n" + host + f"Authorization: Bearer {ann}\r\n".encode()
    both = start + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert raw(server, both).startswith(b"HTTP/1.1 400")
    assert raw(server, start + b"X: " + b"a" * 70_000 + b"\r\n").startswith(b"HTTP/1.1 431")
    assert raw(server, start + b"Host: other\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(server, b"\x00\x01\x02\r\n\r\n").startswith(b"HTTP/1.1 400")
    endless = start + b"Content-Type: application/json\r\nIdempotency-Key: e\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(server, endless, *[b"4000\r\n" + b" " * 0x4000 + b"\r\n"] * 5).startswith(b"HTTP/1.1 413")


def test_a_key_is_bound_to_the_types_of_parameters_too(server: Server, ann: str):
    sql = "SELECT COUNT(*) AS n FROM orders WHERE day >= :c"
    assert server.ask(ann, sql, "typed", params={"c": {"date": "2026-01-09"}}).status_code == 200
    assert server.ask(ann, sql, "typed", params={"c": "datetime.date(2026, 1, 9)"}).status_code == 409


def test_a_rehearsal_explains_nothing(server: Server, ann: str):
    body = {"sql": f"EXPLAIN PRIVACY {COUNT}", "epsilon": 0.1}
    assert server.send("POST", "/v1/rehearsals", ann, json=body).status_code == 400


def test_a_ledger_that_is_served_is_its_owners_alone_and_has_one_server(server: Server, ann: str):
    assert ann
    for each in server.schema.parent.glob("*shop.ledger*"):
        assert not each.stat().st_mode & 0o077, each.name
    command = [sys.executable, "-m", "dpsql", "serve", str(server.schema), "--port", "0"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode
    assert "another server" in second.stderr


def test_bodies_that_never_end_hold_no_connections(server: Server):
    head = f"POST /v1/queries HTTP/1.1\r\nHost: {':'.join(map(str, server.host))}\r\nContent-Length: 9000\r\n\r\n"
    with socket.create_connection(server.host, 20) as connection:
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 401"
        ended = time.monotonic() + 15
        with suppress(ConnectionError):  # it is closed from there, though something still comes
            while time.monotonic() < ended:
                connection.sendall(b" ")
                time.sleep(0.1)
        assert time.monotonic() < ended


def test_connections_of_one_address_are_limited(server: Server):
    connections = [socket.create_connection(server.host, 20) for _ in range(80)]
    try:
        time.sleep(0.5)
        closed = 0
        for each in connections:
            each.settimeout(0.05)
            try:
                closed += each.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                closed += 1
        assert closed >= 16
    finally:
        for each in connections:
            each.close()
    time.sleep(0.3)
    assert server.send("GET", "/healthz").status_code == 200


def test_the_log_holds_no_value_and_no_words_of_a_query(server: Server, ann: str):
    secret = "SELECT COUNT(*) AS n FROM customers WHERE city = 'Quixotria' AND age > :low"
    server.ask(ann, secret, key="people-write-Literals-here", params={"low": 31})
    server.ask(ann, "SELECT Quixotria FROM customers", key="k-Literals-too")
    server.send("GET", "/v1/Quixotria", ann)
    time.sleep(0.2)
    text = "".join(server.log)
    assert any(each["analyst"] == "ann" for each in server.events("query"))
    for word in (PLANTED, "Quixotria", "Literals", ann, ann[6:30], "customers", "SELECT", "/v1/", ":low"):
        assert word not in text, word


def test_little_queries_are_refused(server: Server, ann: str):
    for terms in ({"epsilon": 0.0005}, {"epsilon": None, "rho": 1e-7}, {"epsilon": None, "error": 10_000}):
        response = server.ask(ann, **terms)
        assert response.status_code == 400
        assert "spends at least epsilon 0.001" in response.json()["detail"]
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.0001) COUNT(*) AS n FROM customers"
    assert server.ask(ann, clause).status_code == 400


ODD = ("\ud800", "\x00", "\u202e<script>alert(1)</script>", "😀" * 1000, "1e400", "(" * 500, "SELECT " * 1000, "")


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/explanations", "/v1/rehearsals", "/v1/remaining"])
def test_odd_texts_are_refused_as_any_other(server: Server, ann: str, path: str):
    for place, text in enumerate(ODD):
        for body in ({"sql": text}, {"sql": f"SELECT COUNT(*) AS n FROM customers WHERE city = '{text}' AND"}):
            key = {"Idempotency-Key": f"odd-{place}-{len(body['sql'])}", "Content-Type": "application/json"}
            content = json.dumps({**body, "epsilon": 0.01}).encode("ascii")
            response = server.send("POST", path, ann, headers=key, content=content)
            assert response.status_code == 400, (text[:20], response.text)
            assert response.headers["content-type"] == "application/problem+json"
    numbers = b'{"sql": "SELECT COUNT(*) AS n FROM customers", "epsilon": %s}'
    for number in (b"1e400", b"-0", b"1e-400", b"9" * 5000, b"0.00000000001", b"true", b"[]"):
        key = {"Idempotency-Key": f"number-{number[:9].decode()}", "Content-Type": "application/json"}
        assert server.send("POST", path, ann, headers=key, content=numbers % number).status_code == 400


def test_a_share_has_so_many_runs_and_a_name_of_an_analyst_may_be_odd(server: Server):
    token = token_for(server.schema, "Zoë <b>\"'", epsilon=0.5)
    assert server.ask(token).status_code == 200
    assert server.send("GET", "/v1/budget", token).json()["analyst"] == "Zoë <b>\"'"


def test_options_loosen_nothing(server: Server, ann: str):
    """What an owner declares can be made no wider from outside, by field, clause or parameter."""
    for body in (
        {"unit": None},
        {"keys": {"city": ["Lyon"]}},
        {"neighbours": "bounded"},
        {"engine": "duckdb"},
        {"ledger": 0},
    ):
        assert server.ask(ann, **body).status_code == 400
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) AS n FROM customers"
    assert server.ask(ann, clause, epsilon=0.01).status_code == 400
    for sql in (
        "SELECT * FROM 'customers.csv'",
        "SELECT COUNT(*) FROM read_csv('customers.csv')",
        "COPY customers TO 'x'",
    ):
        response = server.ask(ann, sql)
        assert response.status_code == 400


def test_every_status_is_described(server: Server, ann: str):
    """Runs last in this file: no answer that was seen is missing in the description."""
    paths = server.send("GET", "/openapi.json").json()["paths"]
    statuses = {(method, path, status) for method, path, status in SEEN if path in paths}
    assert len({status for _, _, status in statuses}) >= 12
    for method, path, status in sorted(statuses):
        if method.lower() in paths[path]:
            assert str(status) in paths[path][method.lower()]["responses"], (method, path, status)


def test_a_schema_that_is_not_to_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    schema = shop(tmp_path)
    text = schema.read_text()
    for name, changed, said in (
        ("a", text.replace("[budget]\nepsilon = 100.0\ndelta = 1e-5", ""), "without a [budget]"),
        ("b", text.replace('grid = "off"', 'grids = "off"'), 'unknown setting "grids"'),
        ("c", text.replace('grid = "off"', 'grid = "1ms"'), 'from "50ms"'),
        ("d", text.replace("[server]", "[budget.analysts.ann]\nepsilon = 1\n[server]"), "[budget.analysts]"),
    ):
        (tmp_path / f"{name}.toml").write_text(changed)
        assert main(["serve", str(tmp_path / f"{name}.toml"), "--port", "0"]) == 2
        assert said in capsys.readouterr().err
    for words, said in (
        (["--host", "0.0.0.0"], "HTTPS is needed"),
        (["--host", "0.0.0.0", "--tls-cert", "a", "--tls-key", "b"], "off is for 127.0.0.1 alone"),
        (["--tls-cert", "a"], "go together"),
    ):
        assert main(["serve", str(schema), "--port", "0", *words]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(DPSQLError), closing(open_ledger(tmp_path / "c.ledger")):
        pass  # nothing was made for what is not served


def test_the_example_serves_the_shop(tmp_path: Path):
    script = ROOT / "examples" / "serve_shop.py"
    command = [sys.executable, str(script), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            tokens = [process.stdout.readline().split(": ")[1].strip() for _ in range(2)]
            address = json.loads(process.stderr.readline())["address"]
            for token, tables in zip(tokens, (5, 2), strict=True):
                told = httpx.get(f"{address}/v1/tables", headers={"Authorization": f"Bearer {token}"}, timeout=60)
                assert len(told.json()["tables"]) == tables
        finally:
            for pid in _children(process.pid):
                os.kill(pid, signal.SIGTERM)
            process.wait(60)


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
