"""The owner's log: JSON lines without values, literals, tokens, paths or idempotency keys."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpsql.core.ledger.clock import now, text_of


def _to_stderr(line: str) -> None:
    with suppress(OSError):  # a log that nobody reads must not block answers
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class Journal:
    """Log that writes lines to standard error, or elsewhere."""

    def __init__(self, write: Callable[[str], None] = _to_stderr) -> None:
        self._write = write
        self.events: Counter[str] = Counter()
        self.queries: Counter[tuple[int, bool]] = Counter()

    """Counts by status and whether the answer was cached."""

    def event(self, event: str, **words: Any) -> None:
        """Log an event with its non-empty attributes."""
        self.events[event] += 1
        said = {word: value for word, value in words.items() if value not in (None, "", False)}
        self._write(json.dumps({"time": text_of(now()), "event": event, **said}))

    def query(self, analyst: str, body: str, status: int, **words: Any) -> None:
        """Log a finished query. body: a keyed hash of it, which identifies repetitions."""
        self.queries[status, bool(words.get("replayed"))] += 1
        self.event("query", analyst=analyst, question=body[:16], status=status, **words)
