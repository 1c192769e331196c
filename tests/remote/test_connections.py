"""Connections that are slow, many, long or malformed; programs in front that name who asks; and the words that are said
on the command line."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpsql.errors import DPSQLError
from dpsql.session.server_settings import Peers, ServerWords
from tests.remote.serving import BY_COUNTRY, COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
PROXY = "127.0.0.9"
OPTIONS = {
    "trust-proxy": PROXY,
    "user-header": "X-Remote-User",
    "share-answers": "true",
    "overlap": "true",
    "min-epsilon": "0.005",
    "max-runs": "50",
    "deadline": "30",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    words = 'grid = "off"\noverlap = true\nmin_epsilon = 0.1'
    schema = shop(tmp_path_factory.mktemp("shop"), server=words, epsilon=12, rows=300)
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    with serving(schema, *options) as served:
        yield served


@pytest.fixture(scope="module")
def tokens(server: Server) -> dict[str, str]:
    """Shares that come to more than the budget."""
    tables = {"ann": "customers,orders", "bob": "customers,orders", "eve": "visits"}
    return {name: token_for(server.schema, name, epsilon=8, tables=each) for name, each in tables.items()}


def from_address(server: Server, address: str, path: str = "/v1/budget", **more: Any) -> httpx.Response:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(transport=transport, timeout=60) as client:
        return client.get(f"{server.address}{path}", **more)


def test_a_listed_program_names_who_asks_and_nobody_else_does(server: Server, tokens: dict[str, str]):
    named = {"X-Remote-User": "ann"}
    own = {"Authorization": f"Bearer {tokens['bob']}"}
    assert from_address(server, PROXY, headers=named).json()["analyst"] == "ann"
    assert from_address(server, PROXY, headers=own).json()["analyst"] == "bob"
    for headers, status in (
        ({"X-Remote-User": "nobody"}, 403),
        ({"X-Remote-User": ""}, 403),
        ([*named.items(), ("X-Remote-User", "bob")], 400),
        ([*named.items(), *named.items()], 400),
        ({**named, **own}, 400),
        ({}, 401),
    ):
        assert from_address(server, PROXY, headers=headers).status_code == status, headers
    assert from_address(server, "127.0.0.1", headers=named).status_code == 401
    assert from_address(server, "127.0.0.1", headers={**named, **own}).json()["analyst"] == "bob"
    forwarded = {"X-Forwarded-For": PROXY, "Forwarded": f"for={PROXY}", "X-Real-IP": PROXY, **named}
    assert from_address(server, "127.0.0.1", headers=forwarded).status_code == 401
    for host in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example", "Host": "evil.example"}):
        assert from_address(server, "127.0.0.1", headers={**own, **host}).status_code == 421
    kept = {**own, "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    assert from_address(server, "127.0.0.1", headers=kept).status_code == 200
    for origin in ("http://evil.example", "null", "", server.address + ".evil.example", server.address + "x"):
        assert from_address(server, "127.0.0.1", headers={**own, "Origin": origin}).status_code == 403


def test_whom_a_listed_program_names_has_the_pages_without_a_token(server: Server, tokens: dict[str, str]):
    host = server.address.partition("://")[2]
    html, own = {"Accept": "text/html"}, {"Origin": f"https://{host}"}

    def visitor(address: str, **headers: str) -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(transport=transport, base_url=server.address, headers={**html, **headers}, timeout=60)

    with visitor(PROXY, **{"X-Remote-User": "ann"}) as ann, visitor(PROXY, **{"X-Remote-User": "bob"}) as bob:
        page = ann.get("/")
        assert (page.status_code, "set-cookie" in page.headers) == (200, False)
        assert "<bdi>ann</bdi>" in page.text
        assert "Sign out" not in page.text, "there is nothing to sign out from"
        assert ann.get("/sign-in").headers["location"] == "/"
        form = {"sql": COUNT, "epsilon": "0.07", "nonce": "a" * 32}
        for headers in ({}, {"Origin": f"http://{host}"}, {"Origin": "https://evil.example"}):
            assert ann.post("/ask", data=form, headers=headers).status_code == 403
        priced = ann.post("/price", data=form, headers={**own, "Accept": "application/json"}).json()
        answer = ann.post("/ask", data={**form, "quoted": priced["quoted"]}, headers=own)
        assert answer.status_code == 303
        assert "Released values" in ann.get(answer.headers["location"]).text
        assert bob.get(answer.headers["location"]).status_code == 404
        signed = {"token": tokens["bob"]}
        assert ann.post("/sign-in", data=signed, headers=own).headers["location"] == "/"
        assert "<bdi>ann</bdi>" in ann.get("/").text
    with visitor(PROXY, **{"X-Remote-User": "nobody"}) as nobody:
        assert nobody.get("/").status_code == nobody.get("/sign-in").status_code == 403
    for plain in (visitor(PROXY), visitor("127.0.0.1", **{"X-Remote-User": "ann"})):
        with plain:
            assert plain.get("/budget").status_code == 401
            assert "Token, from the data owner" in plain.get("/").text
    with visitor(PROXY, **own) as signed_in:
        given = signed_in.post("/sign-in", data=signed).headers["set-cookie"]
        assert given.startswith("__Host-")
        cookie = {"Cookie": given.partition(";")[0]}
        assert "<bdi>bob</bdi>" in signed_in.get("/", headers=cookie).text
        named = {**cookie, "X-Remote-User": "ann"}
        assert "<bdi>ann</bdi>" in signed_in.get("/", headers=named).text, "not whose cookie it is"


def test_what_one_has_paid_is_free_for_others_who_may_ask_it(server: Server, tokens: dict[str, str]):
    query = {"queries": [{"sql": BY_COUNTRY, "epsilon": 0.02}]}
    before = server.send("POST", "/v1/prices", tokens["bob"], json=query).json()
    paid = server.ask(tokens["ann"], BY_COUNTRY, epsilon=0.02).json()
    assert not paid["replayed"]
    assert server.send("POST", "/v1/prices", tokens["bob"], json=query).json() == before, "a price tells nothing"
    given = server.ask(tokens["bob"], BY_COUNTRY, epsilon=0.02).json()
    assert given["replayed"]
    assert given["columns"] == paid["columns"]
    assert server.send("GET", "/v1/budget", tokens["bob"]).json()["spent"]["epsilon"] == "0"
    assert server.ask(tokens["eve"], BY_COUNTRY, epsilon=0.02).status_code == 400, "not of one's own tables"
    other = server.ask(tokens["bob"], BY_COUNTRY, epsilon=0.03).json()
    assert not other["replayed"]
    fresh = server.ask(tokens["bob"], BY_COUNTRY, epsilon=0.02, fresh=True).json()
    assert not fresh["replayed"]
    assert fresh["columns"] != paid["columns"]


def test_words_of_the_command_line_hold_before_those_of_the_file(server: Server, tokens: dict[str, str]):
    assert server.ask(tokens["ann"], epsilon=0.004).status_code == 400
    assert server.ask(tokens["ann"], epsilon=0.005).status_code == 200


def test_shares_that_overlap_are_held_by_the_whole_in_no_figures(server: Server, tokens: dict[str, str]):
    prices = {"queries": [{"sql": COUNT, "epsilon": 6}]}
    before = server.send("POST", "/v1/prices", tokens["bob"], json=prices).json()
    assert server.ask(tokens["ann"], epsilon=7).status_code == 200
    assert server.send("POST", "/v1/prices", tokens["bob"], json=prices).json() == before
    refused = server.ask(tokens["bob"], epsilon=6)
    assert refused.status_code == 422
    body = refused.json()
    assert "all analysts share" in body["detail"]
    assert not any(sign.isdigit() for sign in f"{body['detail']}{body['hint']}")


def test_words_are_read_strictly():
    for word, text in (
        ("overlap", "yes"),
        ("share_answers", "1"),
        ("trust_proxy", "localhost"),
        ("trust_proxy", ""),
        ("user_header", "Authorization"),
        ("user_header", "a b"),
        ("max_runs", "0"),
        ("workers", "1.5"),
        ("grid", "250"),
        ("hosts", "a b"),
    ):
        with pytest.raises(DPSQLError):
            ServerWords.read(word, text)
    with pytest.raises(DPSQLError, match="listed programs"):
        ServerWords.of({"user_header": "X-Remote-User"})
    peers = Peers(("10.0.0.0/8", "::1/128"))
    assert [peers.holds(each) for each in ("10.1.2.3", "::ffff:10.1.2.3", "::1", "11.0.0.1", "", "x")] == [
        True, True, True, False, False, False
    ]  # fmt: skip


def raw(server: Server, *parts: bytes, wait: float = 20) -> bytes:
    """What a connection gets for bytes as they are."""
    with socket.create_connection(server.host, wait) as connection:
        received = b""
        with suppress(OSError):
            for part in parts:
                connection.sendall(part)
            while more := connection.recv(65536):
                received += more
        return received


def test_headers_that_two_readers_would_read_in_two_ways_are_refused(server: Server, tokens: dict[str, str]):
    host = b"Host: %s:%d\r\n" % (server.host[0].encode(), server.host[1])
    token = f"Authorization: Bearer {tokens['ann']}\r\n".encode()
    start = b"POST /v1/explanations HTTP/1.1\r\nContent-Type: application/json\r\n" + host + token
    hidden = b"GET /v1/budget HTTP/1.1\r\n" + host + token + b"\r\n"
    length = b"Content-Length: %d\r\n" % len(hidden)
    for headers in (
        length + b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\n" + length,
        b"Content-Length: 0\r\n" + length,
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"X: a\r\n Content-Length: 5\r\n" + length + b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 5, 6\r\n",
        b"X\x00: a\r\n",
        b"X: a\nTransfer-Encoding: chunked\r\n" + length,
    ):
        answered = raw(server, start + headers + b"\r\n0\r\n\r\n" + hidden)
        assert answered.startswith(b"HTTP/1.1 400"), (headers, answered[:80])
        assert answered.count(b"HTTP/1.1") == 1, headers
        assert b"application/problem+json" in answered
        assert b"analyst" not in answered
    assert raw(server, start + b"X: " + b"a" * 20_000).startswith(b"HTTP/1.1 431")


def test_a_body_of_a_gigabyte_is_refused_before_it_is_here(server: Server, tokens: dict[str, str]):
    host = b"Host: %s:%d\r\n" % (server.host[0].encode(), server.host[1])
    start = b"POST /v1/explanations HTTP/1.1\r\nContent-Type: application/json\r\n" + host
    start += f"Authorization: Bearer {tokens['ann']}\r\n".encode()
    said = raw(server, start + b"Content-Length: 1000000000\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 413")
    sent = 0
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(server.host, 20) as connection, suppress(OSError):
        connection.sendall(start + b"Transfer-Encoding: chunked\r\n\r\n")
        while sent < 10**9:
            connection.sendall(chunk)
            sent += len(chunk)
    assert sent < 10**8, "it goes on reading"


def test_who_is_slow_is_told_so_and_holds_nothing(server: Server, tokens: dict[str, str]):
    host = b"Host: %s:%d\r\n" % (server.host[0].encode(), server.host[1])
    token = f"Authorization: Bearer {tokens['ann']}\r\n".encode()
    header = b"POST /v1/queries HTTP/1.1\r\n" + host
    body = header + token + b"Content-Type: application/json\r\nIdempotency-Key: slow\r\nContent-Length: 90\r\n\r\n{"
    told: list[bytes] = []

    def drip(start: bytes, more: bytes) -> None:
        received = b""
        with socket.create_connection(server.host, 40) as connection, suppress(OSError):
            connection.sendall(start)
            end = time.monotonic() + 30
            connection.settimeout(0.5)
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    part = connection.recv(65536)
                    received += part
                    if not part:
                        break
                connection.sendall(more)
        told.append(received)

    threads = [threading.Thread(target=drip, args=each) for each in ((header, b"X: a\r\n"), (body, b" "), (b"", b""))]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(each[:12] for each in told) == [b"", b"HTTP/1.1 408", b"HTTP/1.1 408"]


def test_a_thousand_connections_leave_others_their_answers(server: Server, tokens: dict[str, str]):
    with ExitStack() as held:
        for place in range(1000):
            source = (f"127.0.1.{1 + place // 60}", 0)
            connection = socket.create_connection(server.host, 20, source_address=source)
            held.enter_context(connection)
            if place % 2:
                connection.sendall(b"GET /v1/budget HTTP/1.1\r\n")
        assert server.send("GET", "/healthz").status_code == 200
        assert server.ask(tokens["eve"], "SELECT COUNT(*) AS n FROM visits", epsilon=0.01).status_code == 200
    assert server.send("GET", "/v1/budget", tokens["ann"]).status_code == 200


def test_plain_http_is_for_listed_programs_alone(tmp_path: Path):
    schema = shop(tmp_path, rows=20)
    token = token_for(schema, "ann")
    words = ["--trust-proxy", PROXY, "--grid", "250ms", "--hosts", "data.example"]
    with serving(schema, "--host", "0.0.0.0", *words) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        own = Server(schema, address, server.process, server.log)
        headers = {"Authorization": f"Bearer {token}", "Host": "data.example", "Origin": "https://data.example"}
        assert from_address(own, PROXY, headers=headers).status_code == 200
        with pytest.raises(httpx.HTTPError):
            from_address(own, "127.0.0.1", headers=headers)
