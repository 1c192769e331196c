"""Anchors: the number and hash of a ledger's last line, which is kept elsewhere."""

from __future__ import annotations

import re

from dpsql.errors import InvalidArgument


def check_form(anchor: object) -> None:
    """Raises InvalidArgument for what is no anchor."""
    read_anchor(anchor)


def read_anchor(anchor: object) -> tuple[int, str]:
    """The number and the hash. Raises InvalidArgument for what is no anchor."""
    parts = re.fullmatch("([0-9]{1,15}):([0-9a-f]{64})", anchor) if isinstance(anchor, str) else None
    if parts is None:
        raise InvalidArgument(
            f"an anchor is a number and a hash, 12:9f86d0..., got {str(anchor)[:80]!r}.",
            hint="session.ledger_anchor gives one.",
        )
    return int(parts[1]), parts[2]
