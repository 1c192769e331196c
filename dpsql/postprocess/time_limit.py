"""A limit of time for what runs in DuckDB. One thread sees to all of them: to begin one for each statement, and to wait
until it runs, takes longer than many a statement."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Interrupt = Callable[[], None]


class _Watch:
    """The statements that run, each with the time at which it is interrupted."""

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
        """Whoever is behind this is not interrupted any more."""
        with self._change:
            self._running.pop(statement, None)

    def _see(self) -> None:
        while True:
            with self._change:
                now = time.monotonic()
                for statement, (deadline, interrupt) in list(self._running.items()):
                    if deadline <= now:
                        del self._running[statement]
                        with suppress(Exception):  # the limits of all others depend on this thread
                            interrupt()  # while nobody can end it, so that it is this statement that is stopped
                self._wakes = min((deadline for deadline, _ in self._running.values()), default=float("inf"))
                left = self._wakes - time.monotonic()
                self._change.wait(None if self._wakes == float("inf") else max(left, 0.0))


_watches: dict[int, _Watch] = {}
"""By process: a fork has no thread of its parent's, and may find a lock held for ever."""


@contextmanager
def within(seconds: float, interrupt: Interrupt) -> Iterator[None]:
    """Calls `interrupt` from another thread where what stands inside takes longer."""
    watch, statement = _of_process(), object()
    watch.begin(statement, time.monotonic() + seconds, interrupt)
    try:
        yield
    finally:
        watch.end(statement)


def _of_process() -> _Watch:
    watch = _watches.get(os.getpid())
    return _watches.setdefault(os.getpid(), _Watch()) if watch is None else watch
