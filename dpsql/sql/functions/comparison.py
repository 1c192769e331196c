"""Comparisons and membership: booleans of SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql.intervals import BOOLEAN
from dpsql.schema import Type
from dpsql.sql.expressions import Array, Fact, Function, Vector
from dpsql.sql.functions.rules import (
    as_type,
    boolean_fact,
    both_valid,
    comparable,
)


def _kind_of(vectors: Sequence[Vector]) -> Type:
    """The type to compare in: floats if any is a float, else what they are."""
    kinds = {each.values.dtype.kind for each in vectors}
    if kinds <= {"i", "f"}:
        return Type.REAL if "f" in kinds else Type.INTEGER
    return Type.BOOLEAN if kinds == {"b"} else Type.TEXT


def _comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Type, Sequence[Vector]], Vector]:
    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        kind = _kind_of(vectors)
        left, right = (as_type(each, kind) for each in vectors)
        return Vector(np.asarray(operation(left, right), dtype=bool), both_valid(vectors))

    return kernel


def _is_null(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return Vector(~vectors[0].where_valid())


def _constants(vectors: Sequence[Vector]) -> tuple[list[Any], bool]:
    """The values of the list (constants: their first cell tells), and whether NULL is among them."""
    present = [each for each in vectors if len(each) and (each.valid is None or bool(each.valid[0]))]
    return [each.values[0] for each in present], len(present) < len([each for each in vectors if len(each)])


def _in(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    needle, (listed, null_listed) = vectors[0], _constants(vectors[1:])
    found = _member(needle.values, listed)
    if null_listed:  # x IN (1, NULL) is TRUE or NULL, never FALSE
        return Vector(found, needle.where_valid() & found)
    return Vector(found, needle.valid)


def _member(values: Array, listed: list[Any]) -> Array:
    if values.dtype == np.object_:
        wanted = frozenset(listed)
        return np.fromiter((value in wanted for value in values), dtype=bool, count=len(values))
    if not listed:
        return np.zeros(len(values), dtype=bool)
    return np.isin(values, np.asarray(listed))


_WANTS = "two numbers, two texts or two booleans"

FUNCTIONS = (
    Function("eq", (2, 2), comparable, boolean_fact, _comparison(np.equal), "{0} = {1}", _WANTS,
             syntax=("EQ(this, expression)",)),
    Function("ne", (2, 2), comparable, boolean_fact, _comparison(np.not_equal), "{0} <> {1}", _WANTS,
             syntax=("NEQ(this, expression)",)),
    Function("lt", (2, 2), comparable, boolean_fact, _comparison(np.less), "{0} < {1}", _WANTS,
             syntax=("LT(this, expression)",)),
    Function("le", (2, 2), comparable, boolean_fact, _comparison(np.less_equal), "{0} <= {1}", _WANTS,
             syntax=("LTE(this, expression)",)),
    Function("gt", (2, 2), comparable, boolean_fact, _comparison(np.greater), "{0} > {1}", _WANTS,
             syntax=("GT(this, expression)",)),
    Function("ge", (2, 2), comparable, boolean_fact, _comparison(np.greater_equal), "{0} >= {1}", _WANTS,
             syntax=("GTE(this, expression)",)),
    Function("in", (1, None), comparable, boolean_fact, _in, "{0} IN ({rest})", "values of one type"),
    Function("is_null", (1, 1), lambda _k, _f: Type.BOOLEAN, lambda _f: Fact(BOOLEAN, nullable=False), _is_null,
             "{0} IS NULL", "a value"),
)  # fmt: skip
