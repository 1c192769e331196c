"""Connections are limited when they are accepted, before TLS; HSTS; requests that are too long."""

from __future__ import annotations

import configparser
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from dpsql.remote.server.listening import HANDSHAKE, MOST_CONNECTIONS, LimitedListener, most_connections
from dpsql.remote.server.run import ServerSetup
from dpsql.session.server_settings import Peers, ServerWords
from tests.remote.serving import COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
TLS = Path(__file__).parent / "tls"
"""A certificate of 127.0.0.1 that signs itself, and its key, for these tests only."""
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"), rows=100)
    with serving(schema, "--tls-cert", str(TLS / "cert.pem"), "--tls-key", str(TLS / "key.pem")) as served:
        yield served


def is_closed(connection: socket.socket, seconds: float) -> bool:
    """Whether the other side closes a silent connection within this time."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_idle_connections_before_the_handshake_are_counted_and_ended(server: Server) -> None:
    trusted = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
    with ExitStack() as stack:
        begun = time.monotonic()
        idle = [
            stack.enter_context(socket.create_connection(server.host, 20, source_address=("127.0.0.2", 0)))
            for _ in range(MOST_CONNECTIONS + 20)
        ]
        assert all(is_closed(each, 5) for each in idle[MOST_CONNECTIONS:])
        assert not any(is_closed(each, 0.001) for each in idle[:MOST_CONNECTIONS])
        assert httpx.get(f"{server.address}/healthz", verify=trusted).status_code == 200
        assert all(is_closed(each, HANDSHAKE + 5) for each in idle[:MOST_CONNECTIONS])
        assert time.monotonic() - begun < 3 * HANDSHAKE  # asyncio's own limit is 60 seconds
        again = stack.enter_context(socket.create_connection(server.host, 20, source_address=("127.0.0.2", 0)))
        assert not is_closed(again, 0.5), "closed connections are no longer counted"


def test_answers_under_tls_ask_for_tls_from_then_on(server: Server) -> None:
    trusted = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
    for path in ("/healthz", "/", "/v1/budget"):
        headers = httpx.get(f"{server.address}{path}", verify=trusted).headers
        assert headers["strict-transport-security"] == "max-age=31536000", path
    with (
        socket.create_connection(server.host, 20) as plain,
        trusted.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(b"no request\r\n\r\n")
        assert b"strict-transport-security: max-age=31536000" in tls.recv(65536).lower()


def test_answers_without_tls_do_not(tmp_path: Path) -> None:
    with serving(shop(tmp_path, rows=100)) as plain:
        assert "strict-transport-security" not in httpx.get(f"{plain.address}/healthz").headers
        token = token_for(plain.schema, "ann")
        for length, status in ((9_000, 414), (20_000, 414), (200, 404)):
            long = httpx.get(f"{plain.address}/{'a' * length}", headers={"Authorization": f"Bearer {token}"})
            assert long.status_code == status, length
        assert httpx.get(f"{plain.address}/healthz?{'a' * 9_000}").status_code == 414
        with socket.create_connection(plain.host, 20) as connection:
            connection.sendall(b"GET /" + b"a" * 20_000)
            assert connection.recv(65536).startswith(b"HTTP/1.1 414")
        with socket.create_connection(plain.host, 20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000)
            assert connection.recv(65536).startswith(b"HTTP/1.1 431")
        assert plain.ask(token, COUNT).status_code == 200


@pytest.fixture
def listener() -> Iterator[LimitedListener]:
    with LimitedListener(socket.AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(300)
        listening.setblocking(False)
        yield listening


def accepted(listening: LimitedListener, seconds: float = 0.3) -> list[socket.socket]:
    """All connections that are within the limits."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            found.append(listening.accept()[0])
    return found


def test_there_is_a_limit_of_connections_in_all(listener: LimitedListener) -> None:
    listener.most = 3
    with ExitStack() as stack:
        for place in range(5):
            source = (f"127.0.0.{10 + place}", 0)
            stack.enter_context(socket.create_connection(listener.getsockname(), 5, source_address=source))
        first = accepted(listener)
        assert len(first) == 3
        first[0].close()
        first[0].close()
        stack.enter_context(socket.create_connection(listener.getsockname(), 5))
        assert len(accepted(listener)) == 1, "a connection that is closed twice is one"
        for each in first:
            each.close()


def test_proxies_are_not_limited_and_may_be_the_only_ones(listener: LimitedListener) -> None:
    listener.proxies, listener.only_proxies = Peers(("127.0.0.9/32",)), True
    with ExitStack() as stack:
        for source in ["127.0.0.9"] * (MOST_CONNECTIONS + 5) + ["127.0.0.1"] * 3:
            stack.enter_context(socket.create_connection(listener.getsockname(), 5, source_address=(source, 0)))
        found = accepted(listener)
        assert {each.getpeername()[0] for each in found} == {"127.0.0.9"}
        assert len(found) == MOST_CONNECTIONS + 5
        for each in found:
            each.close()
        assert not listener.addresses


def test_the_limit_leaves_descriptors_for_everything_else() -> None:
    resource = pytest.importorskip("resource")
    most = most_connections()
    assert 0 < most < resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_the_command_of_the_image_and_the_unit_have_what_they_need() -> None:
    (command,) = re.findall(r"^CMD (.*)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    words = json.loads(command)
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert words[0] == "serve"
    names = {"--tls-cert": "certificate", "--tls-key": "key"}
    said = {names[name]: Path(text) for name, text in options.items() if name in names}
    ServerSetup(Path(words[1]), options["--host"], **said).check(ServerWords())  # raises InvalidArgument without TLS
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "packaging" / "dpsql-server.service")
    assert int(unit["Service"]["LimitNOFILE"]) >= 65_536
