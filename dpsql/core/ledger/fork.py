"""Prevents a fork in the middle of a transaction: the child would hold half of it.

SQLite forbids using a connection in a forked child, and even closing it there. Closing rolls back and deletes the
journal by its name, which may be that of the parent's next transaction (https://www.sqlite.org/howtocorrupt.html,
section 2.6). So a fork waits for the transactions of all open ledgers, and a child keeps what it inherited and never
uses it.
"""

from __future__ import annotations

import os
import threading
import weakref

_open: weakref.WeakKeyDictionary[object, threading.RLock] = weakref.WeakKeyDictionary()
_inherited: list[object] = []
_held: list[tuple[object, threading.RLock]] = []


def guard(ledger: object, lock: threading.RLock) -> None:
    """Prevent forks while this lock is held, as long as the ledger lives."""
    _open[ledger] = lock


def _before() -> None:
    _held[:] = list(_open.items())
    for _, lock in _held:
        lock.acquire()


def _in_parent() -> None:
    for _, lock in _held:
        lock.release()
    _held.clear()


def _in_child() -> None:
    _inherited.extend(ledger for ledger, _ in _held)
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
