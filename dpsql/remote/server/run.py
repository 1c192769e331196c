"""Life of a server, from the owner's schema file to shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument
from dpsql.owner.access import access_file, ledger_of
from dpsql.owner.anchors import Anchors, file_of
from dpsql.owner.backups import alone
from dpsql.owner.todos import check_finished
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema
from dpsql.session.server_settings import ServerWords

if TYPE_CHECKING:
    from dpsql.remote.server.service import Service  # loaded while the workers load the rest


@dataclass(frozen=True)
class ServerSetup:
    """Files and address of a server. `check` raises InvalidArgument for plain HTTP, or for disabled protections,
    on an address that others can reach."""

    schema: Path
    host: str = "127.0.0.1"
    port: int = 8443
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    @property
    def local(self) -> bool:
        """True if only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def address(self, port: int) -> str:
        """Return the URL for a port."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{shown}:{port}"

    def check(self, words: ServerWords) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("--tls-cert and --tls-key go together.")
        if self.certificate is None and not self.local and not words.trust_proxy.networks:
            raise InvalidArgument(
                f"{self.host} can be reached by others, so HTTPS is needed.",
                hint="Name --tls-cert and --tls-key, or serve on 127.0.0.1, or to a program that does TLS alone: "
                "[server] trust_proxy.",
            )
        if words.open_handed and not self.local:
            raise InvalidArgument(f"[server] {words.open_handed}: off is for 127.0.0.1 alone.")

    def names(self, port: int, words: ServerWords) -> frozenset[str]:
        """Return the host names for requests: the owner's list, or on a local address its own names."""
        if words.hosts:
            return frozenset(words.hosts)
        if not self.local:
            raise InvalidArgument(
                "a server that others reach needs [server] hosts.", hint='hosts = ["data.example:8443"]'
            )
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset({f"{name}:{port}" for name in (shown, "localhost", "127.0.0.1")})


def serve(serving: ServerSetup, words: Mapping[str, str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, and then finish running queries. words: settings of the command line, which
    override the schema's [server]. Raises DPSQLError if the server cannot start."""
    check_finished(serving.schema)
    schema = Schema.from_toml(serving.schema)
    read = {word: ServerWords.read(word, text) for word, text in (words or {}).items()}
    schema = replace(schema, server=replace(schema.server, **read))
    serving.check(schema.server)
    try:
        from dpsql.remote.server import fork_server as nursery

        nursery.begin()  # as early as possible: it takes longer than all that follows
        import uvicorn  # optional dependency
    except ImportError:
        raise InvalidArgument("a server needs more libraries.", hint='pip install "dpsql[server]"') from None
    access_file(schema)
    with contextlib.closing(ledger_of(schema)) as ledger:  # created, or refused, before anything starts
        ledger.check_room()
    with alone(access_file(schema)):
        asyncio.run(_serve(serving, schema, uvicorn))


async def _serve(serving: ServerSetup, schema: Schema, uvicorn: Any) -> None:
    import signal

    from dpsql.remote.server.guard import MOST_HEADER, Guard
    from dpsql.remote.server.metrics import text_of, told_at
    from dpsql.remote.server.protocol import LimitedProtocol

    with _bound(serving, schema.server) as listening:
        port = listening.getsockname()[1]
        names = serving.names(port, schema.server)
        async with (
            _service(schema) as (app, service),
            told_at(_metrics_at(serving, schema), lambda: text_of(service)),
        ):
            journal, jobs, crew = service.journal, service.jobs, service.crew
            config = uvicorn.Config(
                Guard(app, names, serving.scheme, schema.server.trust_proxy.holds),
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=60,
                h11_max_incomplete_event_size=MOST_HEADER,
                ssl_certfile=serving.certificate,
                ssl_keyfile=serving.key,
            )
            if serving.certificate is not None:
                _limit_handshakes()
            listening.listen(2048)  # before it is announced: readers may connect at once
            undecided, off = ", ".join(schema.undecided_units), schema.server.open_handed
            journal.event("serving", address=serving.address(port), off=off, undecided_units=undecided)
            _silence()
            for each in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again after it has ended
                signal.signal(each, lambda *_: None)
            server = uvicorn.Server(config)
            beginning = asyncio.create_task(_begin(crew, journal, server))
            await server.serve([listening])
            await jobs.ended()
            if not beginning.cancel():
                beginning.result()
            journal.event("stopped")


def _limit_handshakes() -> None:
    """Limit TLS handshakes to `HANDSHAKE` seconds. asyncio's default is a minute, and uvicorn has no setting for it."""
    from dpsql.remote.server.listening import HANDSHAKE

    loop: Any = asyncio.get_running_loop()
    loop.create_server = partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE)


def _bound(serving: ServerSetup, words: ServerWords) -> Any:
    """Return the socket bound to the address. Raises InvalidArgument."""
    import socket

    from dpsql.remote.server.listening import LimitedListener, most_connections

    bound = LimitedListener(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    bound.limits, bound.proxies, bound.most = words.limits, words.trust_proxy, most_connections()
    bound.only_proxies = serving.certificate is None and not serving.local
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((serving.host, serving.port))
    except OSError:
        bound.close()
        raise InvalidArgument(f"{serving.host}:{serving.port} is taken or not of this machine.") from None
    return bound


def _metrics_at(serving: ServerSetup, schema: Schema) -> Path | None:
    """Return the path of the metrics socket; a relative path is relative to the owner's file."""
    return serving.schema.parent / schema.server.metrics if schema.server.metrics else None


async def _begin(crew: Any, journal: Any, server: Any) -> None:
    """Load the tables while pages are already served; if that fails, stop the server."""
    try:
        await crew.start()
        gc.collect()
        gc.freeze()  # as its workers do
        journal.event("ready")
    except Exception:
        server.should_exit = True
        raise


def _silence() -> None:
    """Silence the logs of uvicorn and asyncio: tracebacks in them may contain analysts' input."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.disabled = [logging.NullHandler()], False, True


@contextlib.asynccontextmanager
async def _service(schema: Schema) -> AsyncIterator[tuple[Any, Service]]:
    """Yield the application, with its workers and its ledger."""
    from dpsql.remote.server.anchor_watch import Watch
    from dpsql.remote.server.app import application
    from dpsql.remote.server.authentication import Door
    from dpsql.remote.server.free_keys import FreeKeys
    from dpsql.remote.server.jobs import Jobs
    from dpsql.remote.server.links import Links
    from dpsql.remote.server.links import file_of as links_file
    from dpsql.remote.server.log import Journal
    from dpsql.remote.server.messages import Config
    from dpsql.remote.server.plot_process import PlotProcess
    from dpsql.remote.server.service import Service
    from dpsql.remote.server.workers import Crew

    words, journal, run = schema.server, Journal(), fresh_key().hex()
    free, ledger = FreeKeys(access_file(schema).with_suffix(".free")), ledger_of(schema)
    drawing, links = PlotProcess(), Links(links_file(schema))
    crew = Crew(Config(str(schema.file), run, words), runners=words.workers, deadline=words.deadline)
    try:
        door = Door(access_file(schema), ledger, journal, words)
        anchors = Anchors(file_of(schema))
        watch = Watch(anchors, ledger, journal)
        how: dict[str, Any] = {"free": free, "grid": words.grid, "limits": words.limits, "shared": words.share_answers}
        jobs = Jobs(crew, ledger, journal, anchors=anchors, links=links, words=words, **how)
        service = Service(door, crew, jobs, ledger, journal, ledger.content_key, run, Counter(), drawing, watch, links)
        yield application(service), service
    finally:
        drawing.stop()
        await asyncio.to_thread(crew.stop)
        links.close()
        ledger.close()
        free.close()
