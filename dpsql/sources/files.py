"""Files named by a path or pattern, and their bytes, compressed or not.

The list of files and their compression are the owner's choice. A truncated or damaged file is an error, whoever has
rows in it: bytes that cannot be decompressed are not lines.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dpsql.errors import InvalidSchema
from dpsql.schema.text_format import PACKED_ENDINGS

BROKEN: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""Exceptions of files that cannot be opened, read or decompressed; a path with a NUL is a ValueError."""
_SIGNS = "*?["


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the file at a path, or the files that match a pattern (`*`, `?`, `[...]`, and `**` for folders of any
    depth), sorted by name. An existing file takes precedence over a pattern. Raises InvalidSchema if there is none."""
    if not any(sign in str(path) for sign in _SIGNS) or _exists(path):
        return (path,)
    files = sorted(
        each
        for name in glob.iglob(str(path), recursive=True)  # noqa: PTH207 - also for absolute paths
        if (each := Path(name)).is_file()
    )
    if not files:
        raise InvalidSchema(f"no file {path}.", hint="* and ? in a path stand for other characters: none of them fits.")
    return tuple(files)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a NUL
        return False


def kind_of(path: Path) -> str:
    """Return the ending that determines the format, in lower case and without that of compression: ".csv" for
    `a.CSV.gz`."""
    ending = path.suffix.casefold()
    return Path(path.stem).suffix.casefold() if ending in PACKED_ENDINGS else ending


def stem_of(path: Path) -> str:
    """Return the table name for a file: its name without the endings of format and compression."""
    return Path(path.stem).stem if path.suffix.casefold() in PACKED_ENDINGS else path.stem


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed by its ending. Raises InvalidSchema if the decompressor is missing, and for an archive
    of several files."""
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    openers |= {".zst": _zstandard, ".zip": _zipped}
    with openers.get(path.suffix.casefold(), open)(path, "rb") as file:
        yield file


def _zstandard(path: Path, _mode: str) -> Any:
    from dpsql.sources.arrow import needs_arrow  # loads pandas

    return io.BufferedReader(needs_arrow("a file packed by Zstandard").CompressedInputStream(str(path), "zstd"))


def _zipped(path: Path, _mode: str) -> Any:
    """Open the only file of an archive; metadata added by macOS is ignored. Raises InvalidSchema."""
    with zipfile.ZipFile(path) as archive:
        members = [
            each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            raise InvalidSchema(
                f"{path.name} holds {len(members) or 'no'} files: one archive is one file of rows.",
                hint=f"Unpack it, and name the files: unzip {path.name}.",
            )
        try:
            return archive.open(members[0])  # keeps the archive's file open as long as needed
        except (RuntimeError, NotImplementedError):  # a password, or an unknown method
            reason = "with a password or in a way that is unknown here"
            raise InvalidSchema(
                f"{path.name} is packed {reason}.", hint=f"Unpack it first: unzip {path.name}."
            ) from None


def broken(path: Path, error: Exception) -> InvalidSchema:
    """Return the error for a file that raised one of `BROKEN`, without the original message, which can quote bytes."""
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return InvalidSchema(f"no file {path}.")
    return InvalidSchema(f"{path.name} cannot be read ({type(error).__name__}).")
