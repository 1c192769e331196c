"""Anchors that analysts keep: what a server has told them, so that a ledger that goes back or is rewritten is noticed.

An anchor is the number of an analyst's charge, the hash of the line that tells what came of it, and a code that the
server alone can make of the two. Its key is in a file of its own, outside the ledger: whoever puts an old ledger in the
place of the new one cannot make anchors that fit it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument
from dpsql.owner.access import access_file
from dpsql.owner.secret_files import put_in_place
from dpsql.session.owner_file import Schema

_FORM = re.compile(r"([1-9][0-9]{0,14}):([0-9a-f]{64}):([0-9a-f]{64})")


class Anchors:
    """Makes anchors, and knows those that it has made. file: of the key, made where there is none. Raises
    InvalidArgument for one that others can read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._key = _key_of(file)

    def of(self, analyst: str, place: int, digest: str) -> str:
        """The anchor of that charge of an analyst, with the hash of the line that tells what came of it."""
        text = json.dumps(["dpsql anchor", 1, analyst, place, digest]).encode("ascii")
        return f"{place}:{digest}:{hmac.new(self._key, text, hashlib.sha256).hexdigest()}"

    def read(self, analyst: str, anchor: str) -> tuple[int, str] | None:
        """The number and hash of an anchor; None for one that was not made here for that analyst."""
        parts = _FORM.fullmatch(anchor)
        if parts is None:
            return None
        place, digest = int(parts[1]), parts[2]
        return (place, digest) if hmac.compare_digest(self.of(analyst, place, digest), anchor) else None

    @property
    def missed(self) -> tuple[str, int, str] | None:
        """The analyst, number and hash of an anchor whose line was not in the ledger, if there was one. Raises
        InvalidArgument where that cannot be read."""
        try:
            said = json.loads(self._mark.read_bytes())
            return str(said["analyst"]), int(said["place"]), str(said["hash"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            raise InvalidArgument(f"{self._mark.name} cannot be read.") from None

    def miss(self, analyst: str, place: int, digest: str) -> None:
        """Note that a line which was there is not, so that nobody serves this ledger until its owner has looked."""
        with suppress(OSError):
            put_in_place(self._mark, json.dumps({"analyst": analyst, "place": place, "hash": digest}).encode())

    def found(self) -> None:
        """The line is there again."""
        self._mark.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self._file.with_suffix(".missed")


def file_of(schema: Schema) -> Path:
    """Where the key is. Raises InvalidSchema."""
    return access_file(schema).with_suffix(".anchors")


def renew(schema: Schema) -> None:
    """Another key: no anchor of before holds. Raises InvalidArgument, InvalidSchema."""
    file = file_of(schema)
    put_in_place(file, fresh_key().hex().encode())
    Anchors(file).found()


def _key_of(file: Path) -> bytes:
    try:
        if not file.exists():
            put_in_place(file, fresh_key().hex().encode())
        with file.open("rb") as stream:
            if os.name == "posix" and os.fstat(stream.fileno()).st_mode & 0o077:
                raise InvalidArgument(f"{file.name} can be read by others.", hint=f"chmod 600 {file.name}")
            key = bytes.fromhex(stream.read().decode("ascii"))
    except (OSError, ValueError):
        key = b""
    if len(key) != len(fresh_key()):
        raise InvalidArgument(f"{file.name} cannot be read.", hint="It is the key of anchors; without it, a new one.")
    return key
