"""Claims on queries that are being answered, so that concurrent repeats wait for the same answer and pay nothing.

A claim names a process. Others wait while that process runs; once it is gone they claim the query themselves, with
their own charge. Only on the same machine can this be known for sure, and not on every system, so a claim also expires.
A mistake is harmless: each draw has its own charge, and an answer is shown only if it is kept under its key while no
other is (`Ledger.keep`). So taking over from a process that is still at work costs a second charge, and both show the
same numbers.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path

from dpsql.core.ledger.lines import Process

LEASE = 600.0
"""Seconds after which the claim of a process that cannot be observed (on another machine) expires."""
LONGEST = 3600.0
"""Seconds after which the claim of a running process expires."""

_REMEMBERED = 10_000
_ended: OrderedDict[str, None] = OrderedDict()
"""Hashes of the claim lines that this process gave up last, in case the ledger cannot be written. A claim that drops
out of this list expires."""


def this_process() -> Process:
    """Return the current process."""
    return _process(os.getpid())


@lru_cache(maxsize=8)
def _process(number: int) -> Process:
    return Process(_machine(), number, _started(number) or "")


def gone(process: Process, age: float, digest: str = "") -> bool:
    """Return whether nobody works on the claim of this process any more. age: seconds since the claim; digest: the hash
    of its line."""
    if ended(digest):
        return True
    mine = this_process()
    if process.machine != mine.machine:
        return age > LEASE
    if process.number == mine.number:
        return process.started != mine.started or age > LONGEST
    started = _started(process.number)
    if started is None or (started and process.started and started != process.started):
        return True
    return age > (LONGEST if started or _can_ask() else LEASE)


def end(digest: str) -> None:
    """Remember that a claim of this process is given up."""
    _ended[digest] = None
    if len(_ended) > _REMEMBERED:
        _ended.popitem(last=False)


def ended(digest: str) -> bool:
    """Return whether a claim is known to be given up."""
    return digest in _ended


def _started(number: int) -> str | None:
    """Return the start time of a process of this machine in the system's unit; "" if unknown, None if there is no such
    process (or it has ended and is a zombie)."""
    try:
        words = Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()
        return None if words[0] in (b"Z", b"X", b"x") else words[19].decode()
    except (OSError, IndexError, UnicodeDecodeError):
        pass
    if _can_ask():
        try:
            os.kill(number, 0)  # tests for existence, and sends nothing
        except (ProcessLookupError, OverflowError):  # no system has such large numbers
            return None
        except OSError:
            pass
    return ""


def _can_ask() -> bool:
    return os.name == "posix"  # elsewhere os.kill ends the process whatever the signal


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return a name for this machine since its start, and for the process numbers visible here (a container has its
    own)."""
    words = [platform.node()]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            words.append(str(Path(name).readlink()) if name.endswith("pid") else Path(name).read_text().strip())
        except (OSError, UnicodeDecodeError):
            words.append("")
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]
