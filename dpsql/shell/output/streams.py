"""Standard input and output as they come: closed, full, in other encodings."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from dpsql.errors import DPSQLError, InvalidArgument


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


class OutputFailed(Exception):
    """Something could not be written, though a reader is there: a disk is full."""


class FileFailed(OutputFailed):
    """A file that a user named could not be written in the end; the screen still can."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line, to standard output unless said otherwise, at once: a reader who is gone must stop the spending.

    Raises OutputFailed, or BrokenPipeError for that reader.
    """
    with _writing():
        print(text, file=stream, flush=True)


def say_bytes(content: bytes) -> None:
    """Write to standard output, at once, in its own encoding where that is not UTF-8 and the content is text."""
    with _writing():
        stream = sys.stdout
        encoding = (stream.encoding or "utf-8").lower()
        try:
            text = content.decode()
        except UnicodeDecodeError:  # a Parquet file
            stream.flush()
            stream.buffer.write(content)
            stream.buffer.flush()
            return
        if encoding in ("utf-8", "utf8") and hasattr(stream, "buffer"):
            stream.flush()
            stream.buffer.write(content)  # line ends as they are
            stream.buffer.flush()
        else:
            print(text, end="", flush=True)


def complain(error: DPSQLError) -> None:
    """An error to standard error, as a command tells it."""
    say(f"{type(error).__name__}: {error}", sys.stderr)


def finish_output() -> None:
    """Write what is still buffered. Raises OutputFailed or BrokenPipeError."""
    with _writing():
        sys.stdout.flush()


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"The output cannot be written: {error.strerror}.") from None


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
