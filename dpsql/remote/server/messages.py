"""What the server and its workers say to one another. Whoever imports it loads nothing that reads tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpsql.schema.frozen import dataclass
from dpsql.session.server_settings import ServerWords

OK, REFUSED, UNAVAILABLE, FAILED, HIDDEN = "ok", "refused", "unavailable", "failed", "hidden"
"""An answer; the analyst's own mistake, in words; nothing happened, for a reason of the server's; a run that came to
nothing; the question is at work or its answer not to be seen yet."""
CHANGED = "changed"
"""The data files are not those that the worker began with: nothing happened, and nothing will until a restart."""
FINAL = "final"
"""Answers that are paid for, and that the SQL over them failed on."""
MOST_PRICES, MOST_LISTED = 20, 1000
"""Queries in one request for prices, entries in one answer."""
Reply = dict[str, Any]
Message = Mapping[str, Any]


def in_bytes(said: Any) -> bytes:
    """JSON, in ASCII: what an analyst wrote may hold halves of characters, which UTF-8 has no bytes for."""
    return json.dumps(said, separators=(",", ":"), allow_nan=False).encode("ascii")


@dataclass(frozen=True)
class Config:
    """What a worker is started with."""

    schema: str
    run: str
    words: ServerWords | None = None
    """Those of the schema, if left out."""
