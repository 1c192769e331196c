"""What an owner says of a server: [server] in the owner's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpsql.core.loss import as_epsilon
from dpsql.errors import InvalidSchema, as_written, did_you_mean
from dpsql.schema.frozen import dataclass

OFF = "off"
_GRID = re.compile(r"([0-9]{1,6})(ms|s)")
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True)
class ServerWords:
    """grid: seconds to the first point at which an answer may appear, the next at twice that and so on (None: off);
    min_epsilon: the least that one query may spend; max_runs: how many a share may pay for; workers: how many processes
    run queries; deadline: seconds that one run may take; hosts: names by which the server may be asked; limits: of
    requests at once. Raises InvalidSchema, InvalidPrivacyParameter."""

    grid: float | None = 0.25
    min_epsilon: Fraction = Fraction(1, 1000)
    max_runs: int = 10_000
    workers: int = 1
    deadline: float = 60.0
    hosts: tuple[str, ...] = ()
    limits: bool = True

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> ServerWords:
        """The words of a section, each known or refused."""
        for word in said:
            if word not in _READERS:
                raise InvalidSchema(
                    f'[server] has an unknown setting "{word}".{did_you_mean(word, _READERS)}',
                    hint=f"Known: {', '.join(_READERS)}.",
                )
        return cls(**{word: _READERS[word](value) for word, value in said.items()})

    @property
    def open_handed(self) -> str:
        """What is off that must be on but on this machine alone; "" for nothing."""
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


_READERS: dict[str, Any] = {
    "grid": _grid,
    "min_epsilon": lambda said: as_epsilon(said, "[server] min_epsilon"),
    "max_runs": _whole("max_runs", 1, 10**9),
    "workers": _whole("workers", 1, 16),
    "deadline": _whole("deadline", 1, 86_400),
    "hosts": _hosts,
    "limits": _limits,
}
