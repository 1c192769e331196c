"""Fork server of the server's processes: one process that loads what they share, and is forked for each.

Loading pandas, the parser and the plans dominates the start of a worker. A process without Python threads, tables, open
ledger or connection loads them once, while the server starts; its children share that memory. It keeps no random state:
all randomness is drawn from the operating system each time. Without fork servers (Windows) each worker loads everything
itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from dpsql.remote.server.messages import Config

_STARTS = threading.Lock()
"""Serializes starts: if the fork server has ended, the first thread to notice starts another, while a second thread
would find its address unset (a TypeError of `multiprocessing`)."""
_FIRST, _LOADED = "dpsql.remote.server.parent_watch", "dpsql.remote.server.preload"


def context() -> Any:
    """Return the context, as `multiprocessing.get_context`."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    chosen = multiprocessing.get_context("forkserver")
    chosen.set_forkserver_preload([_FIRST, _LOADED])
    return chosen


def begin() -> None:
    """Start loading in the background."""
    if context().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        with _STARTS:
            forkserver.ensure_running()


def start(process: Any) -> None:
    """Start a process of `context`. Raises OSError or EOFError if the fork server ends at that moment."""
    with _STARTS:
        process.start()


def work(there: Connection, config: Config) -> None:
    """Run a worker. It is imported here, so that the server itself does not load it."""
    end_with_the_server()
    from dpsql.remote.server.worker import main

    main(there, config)


def end_with_the_server() -> None:
    """End this process when the server is killed. Ignore interrupts, which the server handles: it ends its processes
    when they are idle."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    server = multiprocessing.parent_process()
    if server is not None:
        threading.Thread(target=_end_after, args=(server.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    with suppress(OSError):
        connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
