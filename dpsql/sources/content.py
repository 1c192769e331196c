"""A version that is taken from what files hold: whoever has not the key cannot tell one content from another.

A plain hash would do for telling whether a file has changed. But versions are part of keys of questions, which stand in
ledgers, and who knows all rows but one could try candidates for that one against it; not so without the key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from dpsql.sources.files import BROKEN, broken


def content_of(key: bytes, files: Iterable[Path], more: str = "") -> str:
    """The HMAC (RFC 2104, of SHA-256) of files by their names and bytes, in order, and of `more`: 64 hexadecimal
    digits. A text is written with its length and a file as its SHA-256, so that no two lists are alike. Raises
    InvalidSchema."""
    digest = hmac.new(key, _piece(more), digestmod=hashlib.sha256)
    for file in files:
        digest.update(_piece(file.name))
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except BROKEN as error:
            raise broken(file, error) from None
    return digest.hexdigest()


def _piece(text: str) -> bytes:
    written = text.encode("utf-8", "surrogatepass")
    return b"%d " % len(written) + written
