"""Conversion of files in other encodings to streams of UTF-8.

The text of a line depends only on its bytes. A sequence that is invalid in the encoding becomes the byte 0xFF, which is
invalid in UTF-8, so that its field is NULL as in a UTF-8 file. No bytes cause an error.
"""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import BinaryIO

from dpsql.errors import InvalidSchema
from dpsql.schema.encodings import UTF_8, WIDE, is_one_byte

_CHUNK = 1 << 20
_UNREADABLE = "dpsql.unreadable"


def _unreadable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # the handler is used only for decoding
    return "\udcff", error.end


codecs.register_error(_UNREADABLE, _unreadable)
MARKS = {
    "utf-32-le": codecs.BOM_UTF32_LE,  # before UTF-16, whose mark is a prefix of it
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
"""Byte order marks."""


def in_utf_8(path: Path, file: BinaryIO, encoding: str) -> BinaryIO:
    """Return the bytes of a file as UTF-8, without the byte order mark of UTF-16 or UTF-32. Raises InvalidSchema if the
    encoding requires a mark to determine the byte order, and there is none."""
    if encoding == UTF_8:
        return file
    front = b""
    if encoding in WIDE:
        width = 4 if "32" in encoding else 2
        front = file.read(width)
        marked = next((name for name, mark in MARKS.items() if name.startswith(encoding) and front == mark), None)
        if marked is not None:
            encoding, front = marked, b""
        elif encoding in ("utf-16", "utf-32") and front:
            raise InvalidSchema(
                f"{path.name} has no byte order mark, which says how its {encoding.upper()} is written.",
                hint=f'Write encoding = "{encoding}-le", or "{encoding}-be".',
            )
        elif not front:
            encoding = f"{encoding.removesuffix('-le').removesuffix('-be')}-le"
    return io.BufferedReader(_Transcoded(file, encoding, front), _CHUNK)


class _Transcoded(io.RawIOBase):
    """A stream of UTF-8 converted from another stream, some lines at a time."""

    def __init__(self, file: BinaryIO, encoding: str, front: bytes) -> None:
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(_UNREADABLE)
        self._by_line = encoding not in WIDE and not is_one_byte(encoding)
        self._unread = front
        self._text = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
        while not self._text:
            chunk = self._unread + self._file.read(_CHUNK)
            ended = len(chunk) == len(self._unread)
            self._unread = b""
            if self._by_line and not ended:
                cut = chunk.rfind(b"\n") + 1
                chunk, self._unread = chunk[:cut], chunk[cut:]
            self._text = self._decoded(chunk, ended).encode("utf-8", "surrogateescape")
            if ended and not self._text:
                return 0
        size = min(len(buffer), len(self._text))
        buffer[:size], self._text = self._text[:size], self._text[size:]
        return size

    def _decoded(self, chunk: bytes, ended: bool) -> str:
        if not self._by_line:
            return self._decoder.decode(chunk, ended)
        return "\n".join(line.decode(self._encoding, _UNREADABLE) for line in chunk.split(b"\n"))
