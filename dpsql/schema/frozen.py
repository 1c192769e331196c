"""A faster `dataclass` for frozen values.

The standard library compiles six source texts for a frozen class, .4 ms, and a first query needs some 160 of them: two
thirds of the import time. Here only `__init__` is compiled, since it takes arguments by name; the other methods are
shared by all classes, and read fields by `operator.attrgetter`. Other classes (mutable, ordered, subclasses of another
frozen class) are left to the library. Type checkers see the library's decorator.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field, dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Apply `dataclasses.dataclass` semantics to the class, with the same options."""
        return _decorated(cls, options) if cls is not None else lambda made: _decorated(made, options)


__all__ = ["dataclass"]
_SHARED = {"frozen", "slots", "init", "repr", "eq"}
"""Supported options."""


class _Factory:
    """Stands in a signature for a default made by a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _decorated(cls: type, options: dict[str, bool]) -> type:
    inherits = any(hasattr(base, "__dataclass_params__") for base in cls.__mro__[1:])
    if not options.get("frozen") or not options.keys() <= _SHARED or inherits:
        return dataclasses.dataclass(**options)(cls)
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=options.get("slots", False))(cls)
    for name, method in _methods(cls, options).items():
        setattr(cls, name, method)
    cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    return cls


def _methods(cls: type, options: dict[str, bool]) -> dict[str, Any]:
    """Return methods to add. The class's own methods stay, except a __hash__ that Python set to None because of an
    __eq__."""
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {}
    if options.get("init", True):
        methods["__init__"] = _init(cls, fields)
    if options.get("repr", True):
        methods["__repr__"] = _repr
    if options.get("eq", True):
        methods["__eq__"] = _eq([field.name for field in fields if field.compare])
        methods["__hash__"] = _hash([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
    written = vars(cls)
    own = written.keys() - ({"__hash__"} if "__eq__" in written and written.get("__hash__") is None else set())
    methods = {name: method for name, method in methods.items() if name not in own}
    if options.get("slots"):  # Python's default would set attributes
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods | {"__setattr__": _set, "__delattr__": _delete}


def _init(cls: type, fields: Sequence[Field[Any]]) -> Callable[..., None]:
    """Return an `__init__` that takes the fields in order, applies defaults, and calls the class's own checks."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    arguments, lines = ["self"], []
    for field in fields:
        if field.kw_only or not field.init:
            raise TypeError(f"{cls.__name__}.{field.name}: such a field is for dataclasses.dataclass itself")
        default, value = "", field.name
        if field.default is not MISSING:
            default, known[f"_default_{field.name}"] = f"=_default_{field.name}", field.default
        elif field.default_factory is not MISSING:
            default, known[f"_default_{field.name}"] = "=_factory", field.default_factory
            value = f"_default_{field.name}() if {field.name} is _factory else {field.name}"
        arguments.append(field.name + default)
        lines.append(f"    _set(self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(arguments)}):", *lines, "    pass"]), known)
    method: Callable[..., None] = known["__init__"]
    method.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    method.__qualname__, method.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return method


def _tuple_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a getter of these fields as a tuple: NaN and arrays compare as in tuples."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq(names: Sequence[str]) -> Callable[[Any, object], bool]:
    values = _tuple_of(names)

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(names: Sequence[str]) -> Callable[[Any], int]:
    values = _tuple_of(names)

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
