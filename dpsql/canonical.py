"""The canonical form of a calibrated query, as a hash: two texts that ask the same thing in the same way have one.

Everything that decides what is released goes in (plan, declared facts, parameters, noise, loss); places in the text do
not, nor what is done with the released values afterwards.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.release import Release
from dpsql.sql.expressions import Function


def canonical(release: Release, *more: str | None) -> str | None:
    """SHA-256 of what is released and of `more`, as hexadecimal digits; None where something in it has no canonical
    form."""
    found = release.__dict__.get(_KNOWN)
    if found is None:
        found = _hash_of(release)
        object.__setattr__(release, _KNOWN, found)  # a release is planned once and asked for often
    made = hashlib.sha256(f"{found}{more!r}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{KEY_VERSION}:{made}" if found else None


_KNOWN = "_canonical"
KEY_VERSION = 2
"""The number of the way in which keys are made; those of version 1 had none."""


def _hash_of(release: Release) -> str:
    """SHA-256 of what is released; empty where something in it has no canonical form."""
    what = (
        release.query.plan,
        release.analysis.neighbours,
        release.exact,
        release.lattice,
        release.shares,
        release.draws,
        release.levels,
        None if release.searches is None else (release.searches.searches, release.searches.exact),
        release.selector,
        release.threshold,
        release.strategy,
        release.cost,
        release.allowed,
    )
    try:
        return _Hasher().of(what).hex()
    except (TypeError, RecursionError):
        return ""


class _Hasher:
    """Hashes of values, each object once: expressions may share parts."""

    def __init__(self) -> None:
        self._found: dict[int, bytes] = {}
        self._held: list[object] = []  # so that no id is used again

    def of(self, value: object) -> bytes:
        found = self._found.get(id(value))
        if found is None:
            found = hashlib.sha256(self._text(value)).digest()
            self._found[id(value)] = found
            self._held.append(value)
        return found

    def _text(self, value: Any) -> bytes:
        kind = type(value).__name__
        if isinstance(value, Enum):
            return f"{kind}:{value.name}".encode()
        if isinstance(value, Function):
            return f"function:{value.name}".encode()
        if value is None or isinstance(value, bool | int | str | Fraction | Decimal | date):
            return f"{kind}:{value!r}".encode("utf-8", "surrogatepass")
        if isinstance(value, float):
            return f"{kind}:{value.hex()}".encode()
        if isinstance(value, bytes):
            return b"bytes:" + value
        if isinstance(value, np.ndarray):
            return f"{kind}:{value.shape}:".encode() + b"".join(self.of(each) for each in value.tolist())
        if isinstance(value, tuple | list):
            return f"{kind}:".encode() + b"".join(self.of(each) for each in value)
        if isinstance(value, frozenset | set):
            return f"{kind}:".encode() + b"".join(sorted(self.of(each) for each in value))
        if isinstance(value, dict):
            return b"dict:" + b"".join(sorted(self.of(pair) for pair in value.items()))
        if is_dataclass(value):
            compared = [each.name for each in fields(value) if each.compare]
            return f"{kind}:".encode() + b"".join(self.of(name) + self.of(getattr(value, name)) for name in compared)
        raise TypeError(f"no canonical form of {kind}")
