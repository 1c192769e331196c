"""Ctrl-C while the command is still being loaded: a line, and no traceback.

Before `main` runs, the libraries take a second to be imported. The command alone is concerned (`dpsql`, `python -m
dpsql`): who imports dpsql into a program of his own gets the KeyboardInterrupt.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

EXIT = 130
"""What a shell says of a command that was interrupted."""


def is_command(argv: list[str], started: list[str]) -> bool:
    """Whether this process is the command, by the words that it was started with."""
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
