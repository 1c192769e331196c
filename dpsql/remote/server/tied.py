"""What the process does first that workers come from (`nursery`): importing this lets it end with the server, which may
be killed while all the rest is still being loaded. Where the system has no such word it ends when that is done."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

_WHEN_THE_PARENT_ENDS = 1
"""PR_SET_PDEATHSIG of Linux: children of this process do not inherit it."""

if sys.platform == "linux":
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_WHEN_THE_PARENT_ENDS, signal.SIGKILL)
