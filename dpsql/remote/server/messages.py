"""Messages between the server and its workers. Importing this loads nothing that reads tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpsql.schema.frozen import dataclass
from dpsql.session.server_settings import ServerWords

OK, REFUSED, UNAVAILABLE, FAILED, HIDDEN = "ok", "refused", "unavailable", "failed", "hidden"
"""Outcomes: an answer; a mistake of the analyst, in words; nothing happened, for a reason of the server's; a run
without result; the query is running, or its answer may not be seen yet."""
CHANGED = "changed"
"""The data files have changed since the worker started: it does nothing until a restart."""
FINAL = "final"
"""The answers are paid for, but the post-processing SQL failed on them."""
MOST_PRICES, MOST_LISTED = 20, 1000
"""Most queries in one request for costs, and entries in one answer."""
Reply = dict[str, Any]
Message = Mapping[str, Any]


def in_bytes(said: Any) -> bytes:
    """Return JSON in ASCII: analysts' texts may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(said, separators=(",", ":"), allow_nan=False).encode("ascii")


@dataclass(frozen=True)
class Config:
    """Start parameters of a worker."""

    schema: str
    run: str
    words: ServerWords | None = None
    """Defaults to the settings in the schema."""
