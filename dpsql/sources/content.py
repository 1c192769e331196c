"""Content-based versions of files, keyed: without the key, contents cannot be compared with versions.

A plain hash would suffice to detect changes. But versions are part of query keys in ledgers: an attacker who knows all
rows but one could test candidates for that row against a plain hash. The key prevents this.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from dpsql.sources.files import BROKEN, broken


def content_of(key: bytes, files: Iterable[Path], more: str = "") -> str:
    """Return the HMAC (RFC 2104, with SHA-256) of files by their names and bytes, in order, and of `more`: 64
    hexadecimal digits. Texts are prefixed by their length and files replaced by their SHA-256, so that distinct lists
    have distinct encodings. Raises InvalidSchema."""
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
