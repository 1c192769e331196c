"""What a plan's conditions tell apart: which of them can be true together, and what an argument comes to then.

A *state* says of each condition (a comparison, a boolean column, whether a value is NULL) whether it is TRUE, FALSE or
NULL. All that rows can be in are found: of comparisons of one value with constants by trying values around each, of all
others by taking every combination. In a state CASE has one arm, and arguments come to a constant or to one expression.

A wrong state here is a wrong answer and no leak: what a row adds to is decided by the executor (`exact.InCell`).
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
    """The truth of each condition, and of values whether they are NULL, where conditions ask."""

    truths: Mapping[Expr, bool | None]

    @cached_property
    def nulls(self) -> Mapping[Expr, bool | None]:
        return {
            each.args[0]: truth
            for each, truth in self.truths.items()
            if isinstance(each, Call) and each.function.name == "is_null"
        }


class UndecidedCondition(ValueError):
    """A condition whose truth no state tells."""


def made(name: str, *args: Expr) -> Expr:
    """A call whose types are known to fit."""
    found = call(FUNCTIONS[name], *args)
    assert found is not None
    return found


def conditions_of(expr: Expr) -> Iterator[Expr]:
    """The conditions that an argument's value depends on."""
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
    """The CASE of which a condition asks whether it is NULL."""
    inner = expr.args[0] if isinstance(expr, Call) and expr.function.name == "is_null" else None
    return inner if isinstance(inner, Call) and inner.function.name == "case" else None


def _arms(expr: Call) -> Iterator[Expr]:
    """What a CASE comes to, in any arm of those inside it too."""
    for arm in (*expr.args[1:-1:2], expr.args[-1]):
        if isinstance(arm, Call) and arm.function.name == "case":
            yield from _arms(arm)
        else:
            yield arm


def _of_boolean(expr: Call) -> bool:
    """Whether it is computed from one boolean alone, such as CAST(b AS INTEGER)."""
    return sum(not isinstance(arg, Literal) for arg in expr.args) == 1 and any(
        arg.type is Type.BOOLEAN for arg in expr.args
    )


def states_of(conditions: Sequence[Expr], known: Known) -> list[State] | None:
    """All states that rows can be in, or more; None where they are too many."""
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
    """What a condition compares with constants; None of any other."""
    if not isinstance(condition, Call) or condition.function.name not in _COMPARED:
        return None
    values = [arg for arg in condition.args if not isinstance(arg, Literal)]
    return values[0] if len(values) == 1 else None


def _of_one(value: Expr, conditions: Sequence[Expr], known: Known) -> list[dict[Expr, bool | None]]:
    """The states of conditions about one value."""
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
    """What a condition about a value comes to for each of a block of values."""
    stand_in = Column("", value.type, Fact())
    asked = stand_in if condition == value else rebuild(condition, {value: stand_in})
    found = evaluate(asked, lambda _column: block, len(block))
    cells = zip(found.values.tolist(), found.where_valid().tolist(), strict=True)
    return [bool(cell) if valid else None for cell, valid in cells]


def _samples(value: Expr, conditions: Sequence[Expr]) -> list[Key] | None:
    """Values of which one lies in each region that the conditions tell apart; None where that is not known."""
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
    """Each text that others are said to be equal to, and one that is none of them."""
    texts = sorted(each for each in constants if isinstance(each, str))
    equal = names <= {"eq", "ne", "in", "is_null"} and len(texts) == len(constants)
    return [*texts, "".join(texts) + "~"] if equal else None


def _around(constants: Iterable[int | float], *, whole: bool) -> Iterator[int | float]:
    """Each constant and its neighbours on both sides: the next value beyond one lies before the next constant, or is
    it."""
    for each in constants:
        if whole:
            yield from range(math.floor(each) - 1, math.ceil(each) + 2)
        else:
            yield from (math.nextafter(each, -math.inf), float(each), math.nextafter(each, math.inf))


def value_in(expr: Expr, state: State) -> Expr:
    """What an expression comes to in a state: a literal, or an expression that no condition of the state decides.
    Raises Undecided where a CASE needs one that the state does not tell."""
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
    """An arm as CASE has it: a number of another type is left to CASE itself. Raises Undecided."""
    if value.type is kind:
        return value
    if not isinstance(value, Literal):
        raise UndecidedCondition
    return Literal(float(value.value) if kind is Type.REAL and isinstance(value.value, int) else value.value, kind)


def _arm(expr: Call, state: State) -> Expr:
    pairs = zip(expr.args[:-1:2], expr.args[1::2], strict=True)
    return next((value for condition, value in pairs if truth_in(condition, state)), expr.args[-1])


def truth_in(expr: Expr, state: State) -> bool | None:
    """The truth of a condition, in Kleene's logic. Raises Undecided where the state does not tell it."""
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
    """Conditions that are TRUE in some states and in none of the others."""

    def __init__(self, states: Sequence[State]) -> None:
        self.conditions = list(states[0].truths)
        codes = {True: 1, False: 0, None: 2}
        self.table = np.array([[codes[each] for each in state.truths.values()] for state in states], dtype=np.int8)

    def of(self, rows: Sequence[int]) -> Expr:
        """Of the states at these rows of the table."""
        others = np.delete(self.table, rows, axis=0)
        first, *terms = dict.fromkeys(self._conjunction(self.table[row], others) for row in rows)
        found = first
        for each in terms:
            found = made("or", found, each)
        return found

    def _conjunction(self, own: NDArray[np.int8], others: NDArray[np.int8]) -> Expr:
        """Of as few conditions as suffice, those first that leave the fewest others."""
        conjunction: Expr | None = None
        while len(others):
            differ = others != own
            best = int(differ.sum(axis=0).argmax())
            others = others[~differ[:, best]]
            condition = self.conditions[best]
            term = condition if own[best] == 1 else made("is_null" if own[best] == 2 else "not", condition)
            conjunction = term if conjunction is None else made("and", conjunction, term)
        return Literal(value=True, type=Type.BOOLEAN) if conjunction is None else conjunction
