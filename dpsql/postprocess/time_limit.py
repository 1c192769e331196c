"""Time limit for DuckDB statements. One thread watches all of them: starting a thread for each and waiting until it
runs would take longer than many statements."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Interrupt = Callable[[], None]


class _Watch:
    """The running statements, each with its deadline."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._running: dict[object, tuple[float, Interrupt]] = {}
        self._wakes = float("inf")
        threading.Thread(target=self._see, name="dpsql-limits", daemon=True).start()

    def begin(self, statement: object, deadline: float, interrupt: Interrupt) -> None:
        with self._change:
            self._running[statement] = (deadline, interrupt)
            if deadline < self._wakes:
                self._change.notify()

    def end(self, statement: object) -> None:
        """Remove a statement: it is not interrupted after this returns."""
        with self._change:
            self._running.pop(statement, None)

    def _see(self) -> None:
        while True:
            with self._change:
                now = time.monotonic()
                for statement, (deadline, interrupt) in list(self._running.items()):
                    if deadline <= now:
                        del self._running[statement]
                        with suppress(Exception):  # this thread must survive to enforce the other limits
                            interrupt()  # under the lock: only the statement that is registered can be stopped
                self._wakes = min((deadline for deadline, _ in self._running.values()), default=float("inf"))
                left = self._wakes - time.monotonic()
                self._change.wait(None if self._wakes == float("inf") else max(left, 0.0))


_watches: dict[int, _Watch] = {}
"""Keyed by process: a fork has no threads of its parent, and may inherit a locked lock."""


@contextmanager
def within(seconds: float, interrupt: Interrupt) -> Iterator[None]:
    """Call `interrupt` from another thread if the block takes longer."""
    watch, statement = _of_process(), object()
    watch.begin(statement, time.monotonic() + seconds, interrupt)
    try:
        yield
    finally:
        watch.end(statement)


def _of_process() -> _Watch:
    watch = _watches.get(os.getpid())
    return _watches.setdefault(os.getpid(), _Watch()) if watch is None else watch
