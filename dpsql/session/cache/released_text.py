"""Released values as bytes in a ledger: JSON, so that reading an edited file runs no code."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpsql.plan.expressions import Vector
from dpsql.release.release import ReleasedValues
from dpsql.schema.intervals import Interval

FORMAT = 2
"""Version of this format. Payloads of the first version have no number and no integers; they remain readable."""


def to_bytes(released: ReleasedValues) -> bytes:
    """Return the keys and values as bytes. Floats round-trip exactly; integers have all digits."""
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


def from_bytes(payload: bytes) -> ReleasedValues:
    """Parse the bytes of `to_bytes`. Raises ValueError, TypeError, KeyError or other errors of reading for anything
    else."""
    fields = json.loads(payload)
    if fields.get("format", 1) not in (1, FORMAT):
        raise ValueError("an unknown format")
    values = np.array(fields["values"], dtype=np.float64).reshape(len(fields["values"]), int(fields["groups"]))
    keys = tuple(_to_vector(key, values.shape[1]) for key in fields["keys"])
    bounds = tuple(Interval(lower, upper) for lower, upper in fields.get("bounds", ()))
    integers = {int(of): _to_integers(each, values.shape[1]) for of, each in fields.get("integers", {}).items()}
    return ReleasedValues(keys, values, bounds, integers)


def _to_integers(values: Any, groups: int) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) != groups or not all(type(each) is int for each in values):
        raise ValueError("integers of another kind or length")
    return tuple(values)


def _of_vector(vector: Vector) -> dict[str, Any]:
    valid = None if vector.valid is None else vector.valid.tolist()
    return {"dtype": vector.values.dtype.str, "values": vector.values.tolist(), "valid": valid}


def _to_vector(fields: dict[str, Any], groups: int) -> Vector:
    if fields["dtype"] not in _DTYPES:
        raise ValueError("an unknown kind of key")
    values = np.array(fields["values"], dtype=_DTYPES[fields["dtype"]])
    if values.dtype == object and not all(isinstance(cell, str | None) for cell in fields["values"]):
        raise ValueError("keys that are no text")
    valid = None if fields["valid"] is None else np.array(fields["valid"], dtype=np.bool_)
    if values.shape != (groups,) or (valid is not None and valid.shape != (groups,)):
        raise ValueError("keys of another length")
    return Vector(values, valid)


_DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in (np.int64, np.float64, np.bool_, np.object_)}
