"""Parent watch of the fork server, imported first: it ends the process with the server, which may be killed while
everything else is still loading. Afterwards the fork server notices that itself, and has no threads."""

from __future__ import annotations

import os
import threading

_LOOK = 0.05
"""Seconds between checks that the server is alive."""
_server, _done = os.getppid(), threading.Event()


def _watch() -> None:
    while not _done.wait(_LOOK):
        if os.getppid() != _server:  # the parent is dead: this process was adopted
            os._exit(1)


_watching = threading.Thread(target=_watch, daemon=True)
_watching.start()


def untied() -> None:
    """Stop watching: everything is loaded."""
    _done.set()
    _watching.join()
