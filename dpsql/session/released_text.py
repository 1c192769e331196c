"""Released values as bytes, for a ledger to keep: JSON, so that reading a file that somebody edited runs nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpsql.plan.expressions import Vector
from dpsql.release.release import Released
from dpsql.schema.intervals import Interval

FORMAT = 2
"""The number of this form. Payloads of the first one have none, and no integers; they are read for ever."""


def to_bytes(released: Released) -> bytes:
    """The keys and values; floats are written so that they are read as the same floats, integers with all digits."""
    return json.dumps(
        {
            "format": FORMAT,
            "keys": [_of_vector(key) for key in released.keys],
            "groups": released.groups,
            "values": released.values.tolist(),
            "bounds": [[each.lower, each.upper] for each in released.bounds],
            "integers": {str(of): list(each) for of, each in released.integers.items()},
        },
        ensure_ascii=True,
    ).encode()


def from_bytes(payload: bytes) -> Released:
    """What `to_bytes` wrote. Raises ValueError, TypeError, KeyError or other errors of reading for anything else."""
    said = json.loads(payload)
    if said.get("format", 1) not in (1, FORMAT):
        raise ValueError("an unknown format")
    values = np.array(said["values"], dtype=np.float64).reshape(len(said["values"]), int(said["groups"]))
    keys = tuple(_to_vector(key, values.shape[1]) for key in said["keys"])
    bounds = tuple(Interval(lower, upper) for lower, upper in said.get("bounds", ()))
    integers = {int(of): _to_integers(each, values.shape[1]) for of, each in said.get("integers", {}).items()}
    return Released(keys, values, bounds, integers)


def _to_integers(said: Any, groups: int) -> tuple[int, ...]:
    if not isinstance(said, list) or len(said) != groups or not all(type(each) is int for each in said):
        raise ValueError("integers of another kind or length")
    return tuple(said)


def _of_vector(vector: Vector) -> dict[str, Any]:
    valid = None if vector.valid is None else vector.valid.tolist()
    return {"dtype": vector.values.dtype.str, "values": vector.values.tolist(), "valid": valid}


def _to_vector(said: dict[str, Any], groups: int) -> Vector:
    if said["dtype"] not in _DTYPES:
        raise ValueError("an unknown kind of key")
    values = np.array(said["values"], dtype=_DTYPES[said["dtype"]])
    if values.dtype == object and not all(isinstance(cell, str | None) for cell in said["values"]):
        raise ValueError("keys that are no text")
    valid = None if said["valid"] is None else np.array(said["valid"], dtype=np.bool_)
    if values.shape != (groups,) or (valid is not None and valid.shape != (groups,)):
        raise ValueError("keys of another length")
    return Vector(values, valid)


_DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in (np.int64, np.float64, np.bool_, np.object_)}
