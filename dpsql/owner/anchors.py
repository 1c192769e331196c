"""Ledger checkpoints that analysts keep, by which a rollback or rewrite of a server's ledger is noticed.

A checkpoint (anchor) is the number of an analyst's charge, the hash of the line with its outcome, and an authentication
code of both. The key of the code is in a separate file outside the ledger: whoever replaces the ledger with an old one
cannot make matching checkpoints.
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
    """Issues checkpoints, and recognizes its own. file: of the key, created if missing. Raises InvalidArgument if
    others can read it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._key = _key_of(file)

    def of(self, analyst: str, place: int, digest: str) -> str:
        """Return the checkpoint of an analyst's charge with the hash of the line with its outcome."""
        text = json.dumps(["dpsql anchor", 1, analyst, place, digest]).encode("ascii")
        return f"{place}:{digest}:{hmac.new(self._key, text, hashlib.sha256).hexdigest()}"

    def read(self, analyst: str, anchor: str) -> tuple[int, str] | None:
        """Return the number and hash of a checkpoint; None if it was not issued here for that analyst."""
        parts = _FORM.fullmatch(anchor)
        if parts is None:
            return None
        place, digest = int(parts[1]), parts[2]
        return (place, digest) if hmac.compare_digest(self.of(analyst, place, digest), anchor) else None

    @property
    def missed(self) -> tuple[str, int, str] | None:
        """The analyst, number and hash of a checkpoint whose line was missing in the ledger, if any. Raises
        InvalidArgument if the record cannot be read."""
        try:
            said = json.loads(self._mark.read_bytes())
            return str(said["analyst"]), int(said["place"]), str(said["hash"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            raise InvalidArgument(f"{self._mark.name} cannot be read.") from None

    def miss(self, analyst: str, place: int, digest: str) -> None:
        """Record that a line is missing: nobody serves this ledger until its owner has inspected it."""
        with suppress(OSError):
            put_in_place(self._mark, json.dumps({"analyst": analyst, "place": place, "hash": digest}).encode())

    def found(self) -> None:
        """Record that the line is present again."""
        self._mark.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self._file.with_suffix(".missed")


def file_of(schema: Schema) -> Path:
    """Return the path of the key. Raises InvalidSchema."""
    return access_file(schema).with_suffix(".anchors")


def renew(schema: Schema) -> None:
    """Replace the key, which invalidates all earlier checkpoints. Raises InvalidArgument, InvalidSchema."""
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
