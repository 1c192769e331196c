"""Where the server's processes come from: one process that has loaded what they all need, and is forked for each.

Loading pandas, the parser and the plans takes longer than all else that a worker does before its first question. It is
done once, beside the server's own start, by a process without threads of Python and without a table, a ledger that is
open or a connection; its children share that memory. Nothing that is random is kept in it: whatever is drawn is asked
of the operating system each time. Where Python has no such process (Windows) each worker loads all of it by itself.
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
"""One start at a time: where that process has ended, the thread that sees it first begins another, and a second thread
would meanwhile find its address unset (a TypeError of `multiprocessing`)."""
_FIRST, _LOADED = "dpsql.remote.server.parent_watch", "dpsql.remote.server.preload"


def context() -> Any:
    """As of `multiprocessing.get_context`."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    chosen = multiprocessing.get_context("forkserver")
    chosen.set_forkserver_preload([_FIRST, _LOADED])
    return chosen


def begin() -> None:
    """Let it begin to load, while whoever needs it does something else."""
    if context().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        with _STARTS:
            forkserver.ensure_running()


def start(process: Any) -> None:
    """Start a process of `context`. Raises OSError, EOFError where what it comes from ends at that moment."""
    with _STARTS:
        process.start()


def work(there: Connection, config: Config) -> None:
    """The life of a worker, as it is begun: the server itself loads nothing of it."""
    end_with_the_server()
    from dpsql.remote.server.worker import main

    main(there, config)


def end_with_the_server() -> None:
    """A server that is killed takes its processes along. An interrupt is the server's to hear: it lets them end when
    they have no more to do."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    server = multiprocessing.parent_process()
    if server is not None:
        threading.Thread(target=_end_after, args=(server.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    with suppress(OSError):
        connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
