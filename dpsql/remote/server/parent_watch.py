"""What the process does first that workers come from (`nursery`): importing this lets it end with the server, which may
be killed while all the rest is still being loaded. Once that is done it sees so by itself, and has no thread."""

from __future__ import annotations

import os
import threading

_LOOK = 0.05
"""Seconds between two looks at whether the server is there."""
_server, _done = os.getppid(), threading.Event()


def _watch() -> None:
    while not _done.wait(_LOOK):
        if os.getppid() != _server:  # whose children others have now
            os._exit(1)


_watching = threading.Thread(target=_watch, daemon=True)
_watching.start()


def untied() -> None:
    """All is loaded."""
    _done.set()
    _watching.join()
