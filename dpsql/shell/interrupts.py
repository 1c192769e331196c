"""Ctrl-C while the command is loading: prints one line instead of a traceback.

Importing the libraries takes a second before `main` runs. This affects only the command (`dpsql`, `python -m dpsql`):
programs that import dpsql receive the KeyboardInterrupt.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

EXIT = 130
"""Exit code of shells for an interrupted command."""


def is_command(argv: list[str], started: list[str]) -> bool:
    """Return whether this process is the command, judging by its original arguments."""
    module = started[started.index("-m") + 1 :][:1] if "-m" in started else []
    return module == ["dpsql"] or (not module and bool(argv) and Path(argv[0]).stem == "dpsql")


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write("\nInterrupted.\n")
    sys.stderr.flush()
    os._exit(EXIT)  # at once: modules are half imported


if is_command(sys.argv, sys.orig_argv):
    sys.excepthook = _hook
