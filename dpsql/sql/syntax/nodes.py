"""Nodes that dpsql adds to sqlglot's, and positions of nodes in a text."""

from __future__ import annotations

from typing import ClassVar, Self, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel
from sqlglot.tokens import Token

Node = TypeVar("Node", bound=exp.Expr)


class PrivacyClause(exp.Expression):
    """WITH DIFFERENTIAL_PRIVACY: `expressions` holds an EQ(Var name, value) for each option.

    Its position is that of its two words. A bare-word value is a Var, a quoted one an Identifier; every name and value
    has a position.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class NamedArguments(exp.Expression, exp.Condition):
    """A call with named arguments: `this` is the call without them, `expressions` a Kwarg(Var name, value) for each.

    Names and values are as in a PrivacyClause.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


def said(node: exp.Expr) -> str:
    """Return a node in DuckDB's SQL, for names and messages; parts that it cannot express are dropped."""
    if node.find(NamedArguments) is not None:
        node = node.transform(lambda each: each.this if isinstance(each, NamedArguments) else each)
    return str(node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE))


class PriorValue(exp.Expression, exp.Condition):
    """A value from an earlier release of the statement: `this` is its name, `written` the sub-query as written."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "written": True}


def is_name(node: exp.Placeholder) -> bool:
    """Return whether a parameter stands in place of a name or keyword."""
    return node.arg_key in _NAME_ARGUMENTS or (node.arg_key == "this" and isinstance(node.parent, _NAMED_BY_THIS))


_NAME_ARGUMENTS = frozenset({"alias", "columns", "table", "db", "catalog", "using", "except_", "unit", "method"})
_NAMED_BY_THIS = (exp.Table, exp.TableAlias, exp.Column, exp.Aliases, exp.Extract)


def placed(node: Node, first: Token, last: Token) -> Node:
    """Return the node with its position, from the first to the last token."""
    return node.update_positions(line=last.line, col=last.col, start=first.start, end=last.end)


class OwnWords(str):
    """A syntax error in dpsql's words, and what to write instead (or "")."""

    __slots__ = ("hint",)
    hint: str

    def __new__(cls, message: str, hint: str = "") -> Self:
        error = super().__new__(cls, message)
        error.hint = hint
        return error


ANY_VALUE = "any_value"
"""In the meta data of a MODE: it is written as ANY_VALUE, and its columns have to be public."""
