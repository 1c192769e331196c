"""Released values as bytes, for a ledger to keep: JSON, so that reading a file that somebody edited runs nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpsql.intervals import Interval
from dpsql.release import Released
from dpsql.sql.expressions import Vector


def to_bytes(released: Released) -> bytes:
    """The keys and values; floats are written so that they are read as the same floats."""
    return json.dumps(
        {
            "keys": [_of_vector(key) for key in released.keys],
            "groups": released.groups,
            "values": released.values.tolist(),
            "bounds": [[each.lower, each.upper] for each in released.bounds],
        },
        ensure_ascii=True,
    ).encode()


def from_bytes(payload: bytes) -> Released:
    """What `to_bytes` wrote. Raises ValueError, TypeError, KeyError or other errors of reading for anything else."""
    said = json.loads(payload)
    values = np.array(said["values"], dtype=np.float64).reshape(len(said["values"]), int(said["groups"]))
    keys = tuple(_to_vector(key, values.shape[1]) for key in said["keys"])
    return Released(keys, values, tuple(Interval(lower, upper) for lower, upper in said.get("bounds", ())))


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
