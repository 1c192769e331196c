"""Comparisons and membership: booleans of SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Bools, Fact, Function, Vector
from dpsql.plan.functions.rules import Kernel, as_type, boolean_fact, both_valid, comparable
from dpsql.plan.work import NUMBERS, compared
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN


def _kind_of(vectors: Sequence[Vector]) -> Type:
    """Return the type to compare in: floats if any is a float, otherwise the cells' own. Dates are compared as
    integers."""
    kinds = {each.values.dtype.kind for each in vectors}
    if kinds <= {"i", "f"}:
        return Type.REAL if "f" in kinds else Type.INTEGER
    return Type.BOOLEAN if kinds == {"b"} else Type.TEXT


def _compared(operation: Callable[[Any, Any], Any], vectors: Sequence[Vector]) -> Bools:
    kind = _kind_of(vectors)
    left, right = (as_type(each, kind) for each in vectors)
    verdict: Bools = np.asarray(operation(left, right), dtype=bool)
    return verdict


def _comparison(operation: Callable[[Any, Any], Any]) -> Kernel:
    return lambda _kind, vectors: Vector(_compared(operation, vectors), both_valid(vectors))


def _alike(vectors: Sequence[Vector]) -> Bools:
    """Return where both are NULL, or neither is and they are equal."""
    equal = _compared(np.equal, vectors)
    left, right = vectors
    if left.valid is None and right.valid is None:
        return equal
    has_left, has_right = left.where_valid(), right.where_valid()
    alike: Bools = (has_left == has_right) & (equal | ~has_left)
    return alike


def _is_null(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return Vector(~vectors[0].where_valid())


def _constants(vectors: Sequence[Vector]) -> tuple[list[Any], bool]:
    """Return the values of the list (constants, so the first cell suffices), and whether NULL is among them."""
    present = [each for each in vectors if len(each) and (each.valid is None or bool(each.valid[0]))]
    return [each.values[0] for each in present], len(present) < len([each for each in vectors if len(each)])


def _in(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    needle, (listed, null_listed) = vectors[0], _constants(vectors[1:])
    member = _member(needle.values, listed)
    if null_listed:  # x IN (1, NULL) is TRUE or NULL, never FALSE
        return Vector(member, needle.where_valid() & member)
    return Vector(member, needle.valid)


def _member(values: Array, listed: list[Any]) -> Array:
    if values.dtype == np.object_:
        wanted = frozenset(listed)
        return np.fromiter((value in wanted for value in values), dtype=bool, count=len(values))
    if not listed:
        return np.zeros(len(values), dtype=bool)
    return np.isin(values, np.asarray(listed))


def _sql_in(kinds: Sequence[Type], _result: Type) -> str:
    return "{0} IN ({rest})" if len(kinds) > 1 else "CASE WHEN {0} IS NOT NULL THEN FALSE END"


def _never_null(_facts: Sequence[Fact]) -> Fact:
    return Fact(BOOLEAN, nullable=False)


def _operator(name: str, sign: str, operation: Callable[[Any, Any], Any], node: str) -> Function:
    template = f"{{0}} {sign} {{1}}"
    return Function(
        name, (2, 2), comparable, boolean_fact, _comparison(operation), template, _WANTS,
        work=compared, reads=None,
        sql=template,
        syntax=(f"{node}(this, expression)",),
    )  # fmt: skip


_WANTS = "two values of one type"

FUNCTIONS = (
    _operator("eq", "=", np.equal, "EQ"),
    _operator("ne", "<>", np.not_equal, "NEQ"),
    _operator("lt", "<", np.less, "LT"),
    _operator("le", "<=", np.less_equal, "LTE"),
    _operator("gt", ">", np.greater, "GT"),
    _operator("ge", ">=", np.greater_equal, "GTE"),
    Function("not_distinct", (2, 2), comparable, _never_null, lambda _k, v: Vector(_alike(v)),
             "{0} IS NOT DISTINCT FROM {1}", _WANTS,
             work=compared, reads=None,
             sql="{0} IS NOT DISTINCT FROM {1}",
             syntax=("NullSafeEQ(this, expression)",)),
    Function("distinct", (2, 2), comparable, _never_null, lambda _k, v: Vector(~_alike(v)),
             "{0} IS DISTINCT FROM {1}", _WANTS,
             work=compared, reads=None,
             sql="{0} IS DISTINCT FROM {1}",
             syntax=("NullSafeNEQ(this, expression)",)),
    Function("in", (1, None), comparable, boolean_fact, _in, "{0} IN ({rest})", "values of one type",
             work=compared, reads=None,
             sql=_sql_in),
    Function("is_null", (1, 1), lambda _k, _f: Type.BOOLEAN, _never_null, _is_null, "{0} IS NULL", "a value",
             work=NUMBERS, reads=None,
             sql="{0} IS NULL"),
)  # fmt: skip
