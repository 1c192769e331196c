"""Progress message while tables are loaded, at a terminal.

Never shown while a private answer is computed: its duration and progress may depend on the rows.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

PATIENCE = 1.0
"""Seconds until the message appears."""
_EVERY = 0.25


@dataclass
class WaitTime:
    """The duration in seconds, set at the end."""

    seconds: float = 0.0


@contextlib.contextmanager
def waiting(what: str) -> Iterator[WaitTime]:
    """Show a line on standard error that counts the seconds, from `PATIENCE` on while the block runs; erase it at the
    end."""
    waited, start, over = WaitTime(), time.perf_counter(), threading.Event()
    thread = None
    if sys.stderr is not None and sys.stderr.isatty():
        thread = threading.Thread(target=_count, args=(what, start, over), daemon=True)
        thread.start()
    try:
        yield waited
    finally:
        over.set()
        if thread is not None:
            thread.join()
        waited.seconds = time.perf_counter() - start


def _count(what: str, start: float, over: threading.Event) -> None:
    if over.wait(PATIENCE):
        return
    with contextlib.suppress(OSError, ValueError):
        while True:
            sys.stderr.write(f"\r{what} ... {time.perf_counter() - start:.0f} s")
            sys.stderr.flush()
            if over.wait(_EVERY):
                break
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
