"""Standard input and output as they come: closed, full, in other encodings."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from dpsql.errors import InvalidArgument


def text_of(source: str | Path) -> str:
    """The text itself, or that of a file; `-` is standard input. Raises InvalidArgument."""
    name = "-c" if isinstance(source, str) else "standard input" if str(source) == "-" else str(source)
    try:
        text = source if isinstance(source, str) else _content(source)
        text.encode()  # bytes that are not UTF-8 may have come through as lone surrogates
    except OSError as error:
        raise InvalidArgument(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeError:
        raise InvalidArgument(f"{name} is not text in UTF-8.") from None
    return text.removeprefix("\ufeff")


def _content(file: Path) -> str:
    if str(file) != "-":
        return file.read_text(encoding="utf-8")
    return "" if sys.stdin is None else sys.stdin.read()


def ready_output() -> None:
    """Make sure that an answer which is paid for can be shown. Raises BrokenPipeError where output is closed.

    Where the output's encoding lacks a sign, such as ±, it becomes an escape.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open to the end
    if sys.stdout is None:
        raise BrokenPipeError
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go_of_output() -> None:
    """Send to nowhere what is still buffered and cannot be written, so that the interpreter does not complain of it
    at its end."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
