"""Standard input and output in all states: closed, full, in other encodings."""

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
    """Return the text itself, or the content of a file; `-` is standard input. Raises InvalidArgument."""
    name = "-c" if isinstance(source, str) else "standard input" if str(source) == "-" else str(source)
    try:
        text = source if isinstance(source, str) else _content(source)
        text.encode()  # bytes that are not UTF-8 may have been decoded as lone surrogates
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
    """Writing failed although a reader is there, for example because the disk is full."""


class FileFailed(OutputFailed):
    """Writing to a file named by the user failed; the screen still works."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Write and flush a line, to standard output by default: if the reader is gone, spending must stop.

    Raises OutputFailed, or BrokenPipeError if the reader is gone.
    """
    with _writing():
        print(text, file=stream, flush=True)


def say_bytes(content: bytes) -> None:
    """Write and flush to standard output; text in its encoding if that is not UTF-8."""
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
            stream.buffer.write(content)  # keeps line ends
            stream.buffer.flush()
        else:
            print(text, end="", flush=True)


def complain(error: DPSQLError) -> None:
    """Write an error to standard error."""
    say(f"{type(error).__name__}: {error}", sys.stderr)


def finish_output() -> None:
    """Flush the output. Raises OutputFailed or BrokenPipeError."""
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
    """Ensure that a paid answer can be shown. Raises BrokenPipeError if the output is closed.

    Characters that the output's encoding lacks, such as ±, become escapes.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open until exit
    if sys.stdout is None:
        raise BrokenPipeError
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go_of_output() -> None:
    """Discard buffered output that cannot be written, so that the interpreter does not complain at exit."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
