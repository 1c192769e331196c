"""Which files a path names, and their bytes: one file or all that a pattern names, packed or not.

Which files there are, and how they are packed, is the owner's. A file that is broken off or damaged is an error,
whoever has rows in it: bytes that cannot be unpacked are not lines.
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
"""What a file raises that cannot be opened, read or unpacked; a path with a NUL is a ValueError."""
_SIGNS = "*?["


def files_of(path: Path) -> tuple[Path, ...]:
    """The file at a path, or those that a pattern names (`*`, `?`, `[...]`, and `**` for folders of any depth), in the
    order of their names. A file of that very name is that file. Raises InvalidSchema where there is none."""
    if not any(sign in str(path) for sign in _SIGNS) or _exists(path):
        return (path,)
    files = sorted(
        each
        for name in glob.iglob(str(path), recursive=True)  # noqa: PTH207 - of absolute paths too
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
    """The ending that says what a file holds, in small letters, with that of its packing taken off: ".csv" of
    `a.CSV.gz`."""
    ending = path.suffix.casefold()
    return Path(path.stem).suffix.casefold() if ending in PACKED_ENDINGS else ending


def stem_of(path: Path) -> str:
    """The name of a table in a file: the file's own without its ending, and without that of its packing."""
    return Path(path.stem).stem if path.suffix.casefold() in PACKED_ENDINGS else path.stem


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked by its ending. Raises InvalidSchema where what unpacks it is missing, and for an
    archive of several files."""
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    openers |= {".zst": _zstandard, ".zip": _zipped}
    with openers.get(path.suffix.casefold(), open)(path, "rb") as file:
        yield file


def _zstandard(path: Path, _mode: str) -> Any:
    from dpsql.sources.arrow import needs_arrow  # with pandas

    return io.BufferedReader(needs_arrow("a file packed by Zstandard").CompressedInputStream(str(path), "zstd"))


def _zipped(path: Path, _mode: str) -> Any:
    """The one file of an archive; what macOS puts next to it is not counted. Raises InvalidSchema."""
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
            return archive.open(members[0])  # it keeps the archive's file open as long as it needs
        except (RuntimeError, NotImplementedError):  # a password, or a method that is not known
            reason = "with a password or in a way that is unknown here"
            raise InvalidSchema(
                f"{path.name} is packed {reason}.", hint=f"Unpack it first: unzip {path.name}."
            ) from None


def broken(path: Path, error: Exception) -> InvalidSchema:
    """What is said of a file that raised one of `BROKEN`: not its words, which can quote bytes."""
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return InvalidSchema(f"no file {path}.")
    return InvalidSchema(f"{path.name} cannot be read ({type(error).__name__}).")
