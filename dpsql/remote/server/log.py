"""The owner's log: lines of JSON, without a value, a literal, a token, a path or an idempotency key."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpsql.core.ledger.clock import now, text_of


def _to_stderr(line: str) -> None:
    with suppress(OSError):  # a log that nobody reads any more holds up no answer
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class Journal:
    """Lines go to standard error, or elsewhere."""

    def __init__(self, write: Callable[[str], None] = _to_stderr) -> None:
        self._write = write
        self.events: Counter[str] = Counter()
        self.queries: Counter[tuple[int, bool]] = Counter()
        """By status and whether they were answered before."""

    def event(self, event: str, **words: Any) -> None:
        """Something that happened, with what is said of it where anything is."""
        self.events[event] += 1
        said = {word: value for word, value in words.items() if value not in (None, "", False)}
        self._write(json.dumps({"time": text_of(now()), "event": event, **said}))

    def query(self, analyst: str, body: str, status: int, **words: Any) -> None:
        """A query that came to its end. body: a keyed hash of it, so that the same question is known again."""
        self.queries[status, bool(words.get("replayed"))] += 1
        self.event("query", analyst=analyst, question=body[:16], status=status, **words)
