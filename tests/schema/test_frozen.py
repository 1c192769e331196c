"""Frozen values made cheaply are what the standard library makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any

import pytest

import dpsql
from dpsql.schema import frozen

Decorator = Callable[..., Any]


def shapes(dataclass: Decorator) -> dict[str, type]:
    """The same classes under each of the decorators: what they write themselves, defaults, slots, checks."""

    @dataclass(frozen=True)
    class Plain:
        a: int
        b: str = "x"

    @dataclass(frozen=True, slots=True)
    class Slots:
        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list, compare=False, repr=False)

    @dataclass(frozen=True, slots=True)
    class One:
        a: int
        b: str = field(default="x", hash=False)

    @dataclass(frozen=True, eq=False)
    class Itself:
        a: int
        b: str = "x"

    @dataclass(frozen=True, repr=False)
    class Shows:
        a: int
        b: str = "x"

        def __repr__(self) -> str:
            return "shown"

    @dataclass(frozen=True)
    class Equal:  # noqa: PLW1641 - the decorator gives it
        a: int
        b: str = "x"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

    @dataclass(frozen=True)
    class Unhashable:
        a: int
        b: str = "x"
        __hash__ = None

    @dataclass(frozen=True, init=False, slots=True)
    class Made:
        a: int
        b: str

        def __init__(self, a: int, b: str = "x") -> None:
            object.__setattr__(self, "a", a + 1)
            object.__setattr__(self, "b", b)

    @dataclass(frozen=True, slots=True)
    class Checked:
        a: int
        b: str = "x"

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")

    @dataclass(frozen=True)
    class Parent:
        a: int

    @dataclass(frozen=True)
    class Child(Parent):
        b: str = "x"

    @dataclass(slots=True)
    class Mutable:
        a: int
        b: str = "x"

    @dataclass(frozen=True, order=True)
    class Ordered:
        a: int
        b: str = "x"

    return {name: made for name, made in locals().items() if isinstance(made, type)}


OURS, LIBRARY = shapes(frozen.dataclass), shapes(dataclasses.dataclass)
NAMES = sorted(set(OURS) - {"Parent"})


def outcome(action: Callable[[], object]) -> object:
    """What it gives, or which error it raises."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - which one is what is compared
        return type(error), str(error)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_made_shown_compared_hashed_and_kept_as_the_library_has_it(name: str) -> None:
    asked: list[Callable[[type], object]] = [
        lambda made: str(inspect.signature(made)),
        lambda made: made.__match_args__,  # type: ignore[attr-defined]
        lambda made: [(f.name, f.type, f.compare, f.repr) for f in fields(made)],
        lambda made: made.__dataclass_params__.frozen,  # type: ignore[attr-defined]
        lambda made: "__dict__" in dir(made(1)),
        lambda made: repr(made(1)).replace(hex(id(made(1))), ""),
        lambda made: repr(made(1, b="it")),
        lambda made: made(1) == made(1),
        lambda made: (made(1) == made(2), made(1) == made(1, "y"), made(1) == 1, made(1) != made(1)),
        lambda made: len({made(1), made(1), made(2)}),
        lambda made: made.__hash__ is None,
        lambda made: replace(made(1), a=5).a,
        lambda made: replace(made(1), c=5).a,
        lambda made: made(),
        lambda made: made(-1).a,
        lambda made: setattr(made(1), "a", 2),
        lambda made: delattr(made(1), "b"),
        lambda made: copy.copy(made(1, "q")).b,
        lambda made: copy.deepcopy(made(1, "q")).b,
        lambda made: dataclasses.asdict(made(1)),
        lambda made: made(1) < made(2),
    ]
    ours, library = OURS[name], LIBRARY[name]
    for number, ask in enumerate(asked):
        mine, theirs = outcome(lambda ask=ask: ask(ours)), outcome(lambda ask=ask: ask(library))  # type: ignore[misc]
        assert mine == theirs or (number == 5 and name == "Itself"), (name, number, mine, theirs)


def test_hashes_are_of_the_values_that_are_compared() -> None:
    assert hash(OURS["Slots"](1, c=[1])) == hash((1, "x"))
    assert hash(OURS["One"](1)) == hash((1,))
    assert OURS["One"](1, "y") != OURS["One"](1)
    assert hash(OURS["One"](1, "y")) == hash(OURS["One"](1))


def test_what_is_not_a_number_is_itself_in_both() -> None:
    nan = float("nan")
    assert OURS["Plain"](nan) == OURS["Plain"](nan)
    assert LIBRARY["Plain"](nan) == LIBRARY["Plain"](nan)


@pytest.mark.parametrize("name", ["Plain", "Slots"])
def test_nothing_of_a_value_can_be_set_or_deleted(name: str) -> None:
    value = OURS[name](1)
    for change in (lambda: setattr(value, "a", 2), lambda: setattr(value, "z", 2), lambda: delattr(value, "a")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert value.a == 1


def test_fields_that_only_the_library_knows_are_refused() -> None:
    class Named:
        a: int = field(kw_only=True)

    with pytest.raises(TypeError, match="such a field"):
        frozen.dataclass(frozen=True)(Named)


def test_a_list_that_holds_itself_is_shown() -> None:
    held: list[object] = []
    value = OURS["Plain"](held)
    held.append(value)
    assert "..." in repr(value)


def decorated(module: str) -> list[type]:
    """The dataclasses that a module defines."""
    values = vars(importlib.import_module(module)).values()
    return [each for each in values if isinstance(each, type) and each.__module__ == module and is_dataclass(each)]


def test_the_package_uses_it() -> None:
    names = [each.name for each in pkgutil.walk_packages(dpsql.__path__, "dpsql.") if "__main__" not in each.name]
    classes = [each for name in names for each in decorated(name)]
    assert len(classes) > 200
    ours = [each for each in classes if each.__setattr__.__qualname__ == "_set"]
    assert len(ours) > 0.9 * len(classes)


@pytest.mark.parametrize("slots", [False, True])
def test_values_are_pickled(slots: bool) -> None:
    made = OURS["Slots" if slots else "Plain"]
    globals()[made.__name__] = made
    made.__qualname__ = made.__name__
    try:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(made(1, "q"), protocol)) == made(1, "q")
    finally:
        del globals()[made.__name__]
