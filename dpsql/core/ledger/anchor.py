"""Anchors: the number and hash of a ledger's last line, kept outside the ledger."""

from __future__ import annotations

import re

from dpsql.errors import InvalidArgument


def check_form(anchor: object) -> None:
    """Raise InvalidArgument if `anchor` is not an anchor."""
    read_anchor(anchor)


def read_anchor(anchor: object) -> tuple[int, str]:
    """Return the number and the hash. Raises InvalidArgument if `anchor` is not an anchor."""
    parts = re.fullmatch("([0-9]{1,15}):([0-9a-f]{64})", anchor) if isinstance(anchor, str) else None
    if parts is None:
        raise InvalidArgument(
            f"an anchor is a number and a hash, 12:9f86d0..., got {str(anchor)[:80]!r}.",
            hint="session.ledger_anchor gives one.",
        )
    return int(parts[1]), parts[2]
