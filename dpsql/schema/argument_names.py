"""Argument names of public functions: unknown names are refused with a suggestion."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import CO_VARKEYWORDS
from types import FunctionType
from typing import ParamSpec, TypeVar, cast

from dpsql.errors import UnknownArgument, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")

_MEANT = {
    **dict.fromkeys(("eps", "epsilons", "privacy_budget"), "epsilon"),
    **dict.fromkeys(("privacy_unit", "privacy_id", "privacy_id_column", "unit_column", "user", "user_id"), "unit"),
    **dict.fromkeys(("max_contributions", "max_rows_contributed", "max_rows_per_unit"), "max_rows"),
    **dict.fromkeys(("max_groups_contributed", "max_partitions"), "max_groups"),
    **dict.fromkeys(("parameters", "args", "variables"), "params"),
    **dict.fromkeys(("neighbors", "neighbour", "neighbor"), "neighbours"),
    **dict.fromkeys(("clip", "clamp", "clamping_bounds", "ranges", "contribution_bounds"), "bounds"),
    **dict.fromkeys(("public_keys", "partitions", "groups", "categories"), "keys"),
    **dict.fromkeys(("dtypes", "column_types"), "types"),
    **dict.fromkeys(("nulls", "nullables"), "nullable"),
    **dict.fromkeys(("noise", "noise_mechanism"), "mechanism"),
    **dict.fromkeys(("backend", "executor"), "engine"),
    **dict.fromkeys(("alpha", "level"), "confidence"),
    **dict.fromkeys(("accuracy", "within", "max_error"), "error"),
    **dict.fromkeys(("query", "text", "statement"), "sql"),
    **dict.fromkeys(("df", "frame", "tables", "table"), "data"),
}
"""Names in other libraries, with the name here."""
_OF_A_TABLE = {
    "bounds": 'bounds={"age": (0, 100)}',
    "keys": 'keys={"sex": ["F", "M"]}',
    "types": 'types={"born": "date"}',
    "nullable": 'nullable={"age": False}',
    "unit": 'unit="person_id"',
    "max_rows": 'unit="person_id", max_rows=3',
    "max_groups": 'unit="person_id", max_groups=3',
    "public": "public=True",
    "unique": 'unique=["id"]',
}
"""Arguments that declare a table, with an example of each."""


def checked_names(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, raising UnknownArgument (a TypeError too) instead of a bare TypeError for an unknown
    name."""
    code = cast("FunctionType", function).__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = frozenset(known)

    @wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> T:
        if not names.issuperset(named):
            raise unknown_argument(next(name for name in named if name not in names), known)
        return function(*args, **named)

    return checked


def checked_methods(cls: type[T]) -> type[T]:
    """Apply `checked_names` to the class's constructor and public methods."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked_names(member.__func__)))
        elif isinstance(member, FunctionType) and not member.__code__.co_flags & CO_VARKEYWORDS:
            setattr(cls, name, checked_names(member))
    return cls


def unknown_argument(name: str, known: tuple[str, ...]) -> UnknownArgument:
    """Return the refusal of an unknown argument name."""
    meant = _MEANT.get(name.casefold(), "")
    near = f' Did you mean "{meant}"?' if meant in known else did_you_mean(name, known)
    listed = ", ".join(each for each in known if each not in {"self", "cls"})
    hint = f"Arguments: {listed}." if listed else "Leave it out: there are no arguments."
    takes_tables = "tables" in known or "data" in known  # elsewhere, as over a connection, nobody can declare tables
    if takes_tables and meant not in known and (example := _OF_A_TABLE.get(meant or name)) is not None:
        hint = f"It is declared of a table: dpsql.Table(frame, {example})."
    return UnknownArgument(f'there is no argument "{name}".{near}', hint=hint)
