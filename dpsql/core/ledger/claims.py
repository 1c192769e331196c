"""Who is answering a question right now, so that others who ask it at once wait for that answer and pay nothing.

A claim names a process. Others wait while it runs; where it is gone they claim the question themselves, with a charge
of their own. Whether it is gone can be told for sure on one machine only, and there not on every system, so a claim
also ends with time. A mistake is harmless: each draw has a charge of its own, and an answer is shown only when it is
kept under its key while nobody else's is (`Ledger.keep`), so to take over from somebody who is still at work costs a
second charge, and both show the same numbers.
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
"""Seconds after which the claim of a process that cannot be looked at (on another machine) counts as given up."""
LONGEST = 3600.0
"""Seconds after which that of a running process does."""

_REMEMBERED = 10_000
_ended: OrderedDict[str, None] = OrderedDict()
"""Hashes of the lines of claims of this process that were given up last, in case that the ledger cannot be written. One
that is forgotten ends with time."""


def this_process() -> Process:
    """The process that asks."""
    return _process(os.getpid())


@lru_cache(maxsize=8)
def _process(number: int) -> Process:
    return Process(_machine(), number, _started(number) or "")


def gone(process: Process, age: float, digest: str = "") -> bool:
    """Whether nobody is at work on the claim of this process any more. age: seconds since it was made; digest: the hash
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
    """Whether a claim is known to be given up."""
    return digest in _ended


def _started(number: int) -> str | None:
    """When a process of this machine began, as the system counts; "" where that is not known, None if there is none
    (or it has ended, and nobody has asked how)."""
    try:
        words = Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()
        return None if words[0] in (b"Z", b"X", b"x") else words[19].decode()
    except (OSError, IndexError, UnicodeDecodeError):
        pass
    if _can_ask():
        try:
            os.kill(number, 0)  # asks, and sends nothing
        except (ProcessLookupError, OverflowError):  # no system counts so far
            return None
        except OSError:
            pass
    return ""


def _can_ask() -> bool:
    return os.name == "posix"  # elsewhere os.kill ends the process whatever the signal


@lru_cache(maxsize=1)
def _machine() -> str:
    """A name for this machine since its start, and for the numbers that its processes have here (a container has its
    own)."""
    words = [platform.node()]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            words.append(str(Path(name).readlink()) if name.endswith("pid") else Path(name).read_text().strip())
        except (OSError, UnicodeDecodeError):
            words.append("")
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]
