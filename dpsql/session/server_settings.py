"""Server settings: [server] in the owner's file."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from dpsql.core.loss import as_delta, as_epsilon
from dpsql.core.response_time import ResponseTime
from dpsql.errors import InvalidArgument, InvalidSchema, as_written, did_you_mean
from dpsql.executors.resources import Resources
from dpsql.schema.frozen import dataclass

OFF = "off"
_GRID = re.compile(r"([0-9]{1,6})(ms|s)")
_HEADER = re.compile("[A-Za-z][A-Za-z0-9-]{0,63}")
_TAKEN = ("authorization", "host", "origin", "cookie", "content-length", "content-type", "transfer-encoding", "accept")
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Peers:
    """Trusted addresses, as ranges."""

    networks: tuple[str, ...] = ()

    def holds(self, address: str) -> bool:
        """Return whether the address is trusted. address: as given by the socket."""
        if not self.networks:
            return False
        try:
            place = ipaddress.ip_address(address)
        except ValueError:
            return False
        inside = getattr(place, "ipv4_mapped", None) or place
        return any(inside in ipaddress.ip_network(each) for each in self.networks)


@dataclass(frozen=True)
class ServerWords:
    """Settings of a server.

    grid: seconds until the first time at which an answer may appear; the next is twice that, and so on (None: off).
    min_epsilon: least cost of one query. max_runs: runs that a share may pay for. workers: number of processes that run
    queries. deadline: seconds that one run may take. time_epsilon, time_delta: cost of each answer's response time.
    hosts: host names of the server. limits: whether concurrent requests are limited. share_answers: whether an answer
    paid for by one analyst is free for others. overlap: whether shares may add up to more than the budget, which then
    also limits all of them together. trust_proxy: trusted proxies; user_header: the header in which they name the user.
    worker_memory: memory limit in bytes of a process that holds tables (None: none). metrics: path of the monitoring
    socket ("": none). Raises InvalidSchema, InvalidPrivacyParameter.
    """

    grid: float | None = 0.25
    min_epsilon: Fraction = Fraction(1, 1000)
    max_runs: int = 10_000
    workers: int = 1
    deadline: float = 60.0
    time_epsilon: Fraction = Fraction(1, 100)
    time_delta: Fraction = Fraction(1, 10**9)
    hosts: tuple[str, ...] = ()
    limits: bool = True
    share_answers: bool = False
    overlap: bool = False
    trust_proxy: Peers = field(default_factory=Peers)
    user_header: str = ""
    worker_memory: int | None = None
    metrics: str = ""

    def __post_init__(self) -> None:
        if self.user_header and not self.trust_proxy.networks:
            raise InvalidSchema(
                "[server] user_header is believed of listed programs alone.", hint='trust_proxy = ["127.0.0.1"]'
            )

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> ServerWords:
        """Return the settings of a section. Unknown ones are refused."""
        for word in said:
            if word not in _READERS:
                raise InvalidSchema(
                    f'[server] has an unknown setting "{word}".{did_you_mean(word, _READERS)}',
                    hint=f"Known: {', '.join(_READERS)}.",
                )
        return cls(**{word: _READERS[word](value) for word, value in said.items()})

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(_READERS)

    @classmethod
    def read(cls, word: str, text: str) -> Any:
        """Return the value of a setting typed at a command line: a comma-separated list, a number, true or false, or
        text. Raises InvalidSchema, InvalidPrivacyParameter."""
        value: object = text
        if word in ("hosts", "trust_proxy"):
            value = [each.strip() for each in text.split(",")]
        elif word in ("share_answers", "overlap"):
            value = {"true": True, "false": False}.get(text, text)
        elif re.fullmatch("[0-9]+", text):
            value = int(text)
        elif re.fullmatch(r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?", text):
            value = float(text)
        return _READERS[word](value)

    def response_time(self, share_delta: Fraction) -> ResponseTime | None:
        """Return the cost of an answer's response time for a share. None if answers are seen after the deadline of
        every run, which reveals nothing, or if there is no grid."""
        if self.grid is None or self.grid >= self.deadline or not share_delta:
            return None
        return ResponseTime(self.time_epsilon, self.time_delta)

    @property
    def open_handed(self) -> str:
        """Names of the settings that are off and may only be off on a local machine; "" for none."""
        off = [word for word, value in (("grid", self.grid), ("limits", self.limits)) if not value]
        return " and ".join(off)


def _grid(said: object) -> float | None:
    if said == OFF:
        return None
    parts = _GRID.fullmatch(said) if isinstance(said, str) else None
    seconds = int(parts[1]) / (1000 if parts[2] == "ms" else 1) if parts else 0.0
    if not 0.05 <= seconds <= 60:
        raise InvalidSchema('[server] grid is from "50ms" to "60s", or "off".', hint='Write grid = "250ms".')
    return seconds


def _positive_delta(said: object) -> Fraction:
    delta = as_delta(said, "[server] time_delta")
    if not delta:
        raise InvalidSchema("[server] time_delta must be above 0.", hint="Write time_delta = 1e-9.")
    return delta


def _limits(said: object) -> bool:
    if said not in ("on", OFF):
        raise InvalidSchema('[server] limits is "on" or "off".')
    return said != OFF


def _whole(word: str, least: int, most: int) -> Any:
    def read(said: object) -> int:
        if isinstance(said, bool) or not isinstance(said, int) or not least <= said <= most:
            raise InvalidSchema(
                f"[server] {word} is a whole number from {least} to {most:,}, got {as_written(said)[:40]}."
            )
        return said

    return read


def _hosts(said: object) -> tuple[str, ...]:
    names = said if isinstance(said, list) else None
    if not names or not all(isinstance(each, str) and _HOST.fullmatch(each.lower()) for each in names):
        raise InvalidSchema("[server] hosts lists names, each with its port.", hint='hosts = ["data.example:8443"]')
    return tuple(each.lower() for each in names)


def _switch(word: str) -> Any:
    def read(said: object) -> bool:
        if not isinstance(said, bool):
            raise InvalidSchema(f"[server] {word} is true or false, got {as_written(said)[:40]}.")
        return said

    return read


def _peers(said: object) -> Peers:
    try:
        if isinstance(said, list) and said and all(isinstance(each, str) for each in said):
            return Peers(tuple(str(ipaddress.ip_network(each)) for each in said))
    except ValueError:
        pass
    raise InvalidSchema(
        "[server] trust_proxy lists addresses or ranges of them.", hint='trust_proxy = ["127.0.0.1", "10.1.0.0/24"]'
    )


def _header(said: object) -> str:
    if isinstance(said, str) and _HEADER.fullmatch(said) and said.lower() not in _TAKEN:
        return said.lower()
    raise InvalidSchema("[server] user_header is the name of a header.", hint='user_header = "X-Remote-User"')


def _memory(said: object) -> int:
    if not sys.platform.startswith("linux"):
        raise InvalidSchema("[server] worker_memory needs Linux.")
    try:
        size = Resources.of(memory=said).memory if isinstance(said, str) else None
    except InvalidArgument:
        size = None
    if size is None:
        raise InvalidSchema("[server] worker_memory is a size, 100MB or more.", hint='worker_memory = "4GB"')
    return size


def _path(said: object) -> str:
    if not isinstance(said, str) or not said or "\0" in said:
        raise InvalidSchema("[server] metrics is the path of a socket.", hint='metrics = "/run/dpsql/metrics.sock"')
    return said


_READERS: dict[str, Any] = {
    "grid": _grid,
    "min_epsilon": lambda said: as_epsilon(said, "[server] min_epsilon"),
    "max_runs": _whole("max_runs", 1, 10**9),
    "workers": _whole("workers", 1, 16),
    "deadline": _whole("deadline", 1, 86_400),
    "time_epsilon": lambda said: as_epsilon(said, "[server] time_epsilon"),
    "time_delta": _positive_delta,
    "hosts": _hosts,
    "limits": _limits,
    "share_answers": _switch("share_answers"),
    "overlap": _switch("overlap"),
    "trust_proxy": _peers,
    "user_header": _header,
    "worker_memory": _memory,
    "metrics": _path,
}
