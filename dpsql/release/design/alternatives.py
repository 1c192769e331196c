"""States of a plan's conditions: which can hold together, and the value of each argument in each state.

A *state* assigns TRUE, FALSE or NULL to each condition (a comparison, a boolean column, an IS NULL test). All states
that rows can be in are enumerated: for comparisons of one value with constants by trying values around each constant,
for all others by taking every combination. In a state CASE has one arm, and arguments reduce to a constant or to one
expression.

A wrong state here gives a wrong answer but no leak: the executor decides what a row adds to (`exact.CellPart`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.evaluation import evaluate, folded
from dpsql.plan.expressions import (
    DTYPES,
    Call,
    Column,
    Expr,
    Fact,
    Literal,
    Vector,
    blank,
    call,
    call_of,
    rebuild,
)
from dpsql.plan.facts import Known, fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass

MOST_STATES = 256
_LOGIC = frozenset({"and", "or", "not", "is_true", "is_false"})
_COMPARED = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "in", "is_null"})
_ORDERED = (Type.INTEGER, Type.REAL, Type.DATE, Type.TIMESTAMP)
_LARGEST = 2**62
_TRUTHS = (True, False)


@dataclass(frozen=True, eq=False)
class State:
    """The truth of each condition; for values that conditions test, whether they are NULL."""

    truths: Mapping[Expr, bool | None]

    @cached_property
    def nulls(self) -> Mapping[Expr, bool | None]:
        return {
            each.args[0]: truth
            for each, truth in self.truths.items()
            if isinstance(each, Call) and each.function.name == "is_null"
        }


class UndecidedCondition(ValueError):
    """Raised for a condition whose truth no state determines."""


def made(name: str, *args: Expr) -> Expr:
    """Return a call whose types are known to fit."""
    found = call(FUNCTIONS[name], *args)
    assert found is not None
    return found


def conditions_of(expr: Expr) -> Iterator[Expr]:
    """Yield the conditions that an argument's value depends on."""
    if isinstance(expr, Literal):
        return
    name = expr.function.name if isinstance(expr, Call) else ""
    chosen = _chosen(expr)
    if chosen is not None:
        yield from conditions_of(chosen)
        yield from (made("is_null", arm) for arm in _arms(chosen) if not isinstance(arm, Literal))
    elif expr.type is Type.BOOLEAN and name not in _LOGIC and name != "case":
        yield expr
    elif isinstance(expr, Call) and (expr.type is Type.BOOLEAN or expr.branches or _of_boolean(expr)):
        for arg in expr.args:
            yield from conditions_of(arg)


def _chosen(expr: Expr) -> Call | None:
    """Return the CASE that a condition tests for NULL."""
    inner = expr.args[0] if isinstance(expr, Call) and expr.function.name == "is_null" else None
    return inner if isinstance(inner, Call) and inner.function.name == "case" else None


def _arms(expr: Call) -> Iterator[Expr]:
    """Yield the arms of a CASE, including those of nested ones."""
    for arm in (*expr.args[1:-1:2], expr.args[-1]):
        if isinstance(arm, Call) and arm.function.name == "case":
            yield from _arms(arm)
        else:
            yield arm


def _of_boolean(expr: Call) -> bool:
    """Return whether the call has one non-literal argument, a boolean, such as CAST(b AS INTEGER)."""
    return sum(not isinstance(arg, Literal) for arg in expr.args) == 1 and any(
        arg.type is Type.BOOLEAN for arg in expr.args
    )


def states_of(conditions: Sequence[Expr], known: Known) -> list[State] | None:
    """Return all states that rows can be in, possibly more; None if there are too many."""
    about: dict[Expr, list[Expr]] = {}
    for each in dict.fromkeys(conditions):
        about.setdefault(_compared(each) or each, []).append(each)
    kinds: list[list[dict[Expr, bool | None]]] = []
    many = 1
    for value, alike in about.items():
        kinds.append(_of_one(value, alike, known))
        many *= len(kinds[-1])
        if many > MOST_STATES:
            return None
    return [State({each: truth for kind in chosen for each, truth in kind.items()}) for chosen in product(*kinds)]


def _compared(condition: Expr) -> Expr | None:
    """Return the value that a condition compares with constants; None for other conditions."""
    if not isinstance(condition, Call) or condition.function.name not in _COMPARED:
        return None
    values = [arg for arg in condition.args if not isinstance(arg, Literal)]
    return values[0] if len(values) == 1 else None


def _of_one(value: Expr, conditions: Sequence[Expr], known: Known) -> list[dict[Expr, bool | None]]:
    """Return the states of conditions about one value."""
    nullable = fact(value, known).nullable
    samples = _samples(value, conditions)
    if samples is None:
        if len(conditions) > MOST_STATES.bit_length():
            return [{}] * (MOST_STATES + 1)
        some = [[*_TRUTHS, None] if fact(each, known).nullable else [*_TRUTHS] for each in conditions]
        return [dict(zip(conditions, chosen, strict=True)) for chosen in product(*some)]
    cells = [blank(value.type) if each is None else each for each in (*samples, *([None] * nullable))]
    valid = np.array([True] * len(samples) + [False] * nullable)
    block = Vector(np.array(cells, dtype=DTYPES[value.type]), None if valid.all() else valid)
    columns = [_truths(each, value, block) for each in conditions]
    return [dict(zip(conditions, truths, strict=True)) for truths in dict.fromkeys(zip(*columns, strict=True))]


def _truths(condition: Expr, value: Expr, block: Vector) -> list[bool | None]:
    """Return the truth of a condition for each value of a block."""
    stand_in = Column("", value.type, Fact())
    asked = stand_in if condition == value else rebuild(condition, {value: stand_in})
    found = evaluate(asked, lambda _column: block, len(block))
    cells = zip(found.values.tolist(), found.where_valid().tolist(), strict=True)
    return [bool(cell) if valid else None for cell, valid in cells]


def _samples(value: Expr, conditions: Sequence[Expr]) -> list[Key] | None:
    """Return sample values, at least one for each region that the conditions distinguish; None if the regions are
    unknown."""
    if value.type is Type.BOOLEAN:
        return [*_TRUTHS]
    calls = [each for each in conditions if isinstance(each, Call) and _compared(each) == value]
    if len(calls) < len(conditions):
        return None
    constants = {arg.value for each in calls for arg in each.args if isinstance(arg, Literal)} - {None}
    if value.type is Type.TEXT:
        return _texts({each.function.name for each in calls}, constants)
    numbers = [each for each in constants if isinstance(each, int | float) and abs(each) < _LARGEST]
    if value.type not in _ORDERED or len(numbers) < len(constants):
        return None
    return [*_around(sorted(numbers), whole=value.type is not Type.REAL)] or [0]


def _texts(names: set[str], constants: set[Key]) -> list[Key] | None:
    """Return each text of an equality test, and one different text."""
    texts = sorted(each for each in constants if isinstance(each, str))
    equal = names <= {"eq", "ne", "in", "is_null"} and len(texts) == len(constants)
    return [*texts, "".join(texts) + "~"] if equal else None


def _around(constants: Iterable[int | float], *, whole: bool) -> Iterator[int | float]:
    """Yield each constant and its neighbours on both sides. The next value beyond a constant is at most the next
    constant."""
    for each in constants:
        if whole:
            yield from range(math.floor(each) - 1, math.ceil(each) + 2)
        else:
            yield from (math.nextafter(each, -math.inf), float(each), math.nextafter(each, math.inf))


def value_in(expr: Expr, state: State) -> Expr:
    """Return the value of an expression in a state: a literal, or an expression that no condition of the state decides.
    Raises UndecidedCondition if a CASE needs a condition that the state does not determine."""
    if isinstance(expr, Literal):
        return expr
    if state.nulls.get(expr):
        return Literal(None, expr.type)
    if expr.type is Type.BOOLEAN:
        return Literal(truth_in(expr, state), Type.BOOLEAN)
    if not isinstance(expr, Call) or not (expr.branches or _of_boolean(expr)):
        return expr
    if expr.function.name == "case":
        return _as(expr.type, value_in(_arm(expr, state), state))
    found = folded(call_of(expr.function, tuple(value_in(arg, state) for arg in expr.args), expr.type))
    return Literal(None, expr.type) if state.nulls.get(found) else found


def _as(kind: Type, value: Expr) -> Expr:
    """Convert an arm to the type of its CASE; only literals are converted. Raises UndecidedCondition for others."""
    if value.type is kind:
        return value
    if not isinstance(value, Literal):
        raise UndecidedCondition
    return Literal(float(value.value) if kind is Type.REAL and isinstance(value.value, int) else value.value, kind)


def _arm(expr: Call, state: State) -> Expr:
    pairs = zip(expr.args[:-1:2], expr.args[1::2], strict=True)
    return next((value for condition, value in pairs if truth_in(condition, state)), expr.args[-1])


def truth_in(expr: Expr, state: State) -> bool | None:
    """Return the truth of a condition, in Kleene's logic. Raises UndecidedCondition if the state does not determine
    it."""
    if expr in state.truths:
        return state.truths[expr]
    if isinstance(expr, Literal):
        return None if expr.value is None else bool(expr.value)
    chosen = _chosen(expr)
    if chosen is not None:
        return _is_null(value_in(chosen, state), state)
    name = expr.function.name if isinstance(expr, Call) else ""
    if not isinstance(expr, Call) or (name not in _LOGIC and name != "case"):
        raise UndecidedCondition
    if name == "case":
        return truth_in(_arm(expr, state), state)
    truths = [truth_in(arg, state) for arg in expr.args]
    if name in ("and", "or"):  # TRUE decides OR, and FALSE AND, whatever the others are
        decides = name == "or"
        return decides if decides in truths else None if None in truths else not decides
    if name == "not":
        return None if truths[0] is None else not truths[0]
    return truths[0] is (name == "is_true")


def _is_null(value: Expr, state: State) -> bool:
    if isinstance(value, Literal):
        return value.value is None
    truth = state.nulls.get(value)
    if truth is None:
        raise UndecidedCondition
    return truth


class KnownConditions:
    """Builds conditions that are TRUE in given states and in no others."""

    def __init__(self, states: Sequence[State]) -> None:
        self.conditions = list(states[0].truths)
        codes = {True: 1, False: 0, None: 2}
        self.table = np.array([[codes[each] for each in state.truths.values()] for state in states], dtype=np.int8)

    def of(self, rows: Sequence[int]) -> Expr:
        """Return the condition of the states at these rows of the table."""
        others = np.delete(self.table, rows, axis=0)
        first, *terms = dict.fromkeys(self._conjunction(self.table[row], others) for row in rows)
        found = first
        for each in terms:
            found = made("or", found, each)
        return found

    def _conjunction(self, own: NDArray[np.int8], others: NDArray[np.int8]) -> Expr:
        """Return a conjunction of few conditions, greedily choosing the one that excludes the most other states."""
        conjunction: Expr | None = None
        while len(others):
            differ = others != own
            best = int(differ.sum(axis=0).argmax())
            others = others[~differ[:, best]]
            condition = self.conditions[best]
            term = condition if own[best] == 1 else made("is_null" if own[best] == 2 else "not", condition)
            conjunction = term if conjunction is None else made("and", conjunction, term)
        return Literal(value=True, type=Type.BOOLEAN) if conjunction is None else conjunction
