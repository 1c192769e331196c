"""AND, OR, NOT, IS TRUE and IS FALSE in Kleene's three-valued logic."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.plan.expressions import Bools, Fact, Function, Vector
from dpsql.plan.functions.rules import always, boolean_fact
from dpsql.plan.work import NUMBERS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN


def _booleans(kinds: Sequence[Type]) -> bool:
    return all(kind is Type.BOOLEAN for kind in kinds)


def _true(vector: Vector) -> Bools:
    held: Bools = vector.values.astype(bool, copy=False)
    return held if vector.valid is None else held & vector.valid


def _false(vector: Vector) -> Bools:
    held: Bools = ~vector.values.astype(bool, copy=False)
    return held if vector.valid is None else held & vector.valid


def _and(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    left, right = vectors
    true = _true(left) & _true(right)
    if left.valid is None and right.valid is None:
        return Vector(true)
    return Vector(true, true | _false(left) | _false(right))


def _or(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    left, right = vectors
    true = _true(left) | _true(right)
    if left.valid is None and right.valid is None:
        return Vector(true)
    return Vector(true, true | (_false(left) & _false(right)))


def _not(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return Vector(~vectors[0].values.astype(bool, copy=False), vectors[0].valid)


def _never_null(_facts: Sequence[Fact]) -> Fact:
    return Fact(BOOLEAN, nullable=False)


_LOGIC = always(Type.BOOLEAN, _booleans)

FUNCTIONS = (
    Function("and", (2, 2), _LOGIC, boolean_fact, _and, "{0} AND {1}", "conditions",
             work=NUMBERS,
             sql="{0} AND {1}"),
    Function("or", (2, 2), _LOGIC, boolean_fact, _or, "{0} OR {1}", "conditions",
             work=NUMBERS,
             sql="{0} OR {1}"),
    Function("not", (1, 1), _LOGIC, boolean_fact, _not, "NOT {0}", "a condition",
             work=NUMBERS,
             sql="NOT {0}",
             syntax=("Not(this)",)),
    Function("is_true", (1, 1), _LOGIC, _never_null, lambda _k, v: Vector(_true(v[0])), "{0} IS TRUE", "a condition",
             work=NUMBERS,
             sql="{0} IS TRUE"),
    Function("is_false", (1, 1), _LOGIC, _never_null, lambda _k, v: Vector(_false(v[0])), "{0} IS FALSE",
             "a condition",
             work=NUMBERS,
             sql="{0} IS FALSE"),
)  # fmt: skip
