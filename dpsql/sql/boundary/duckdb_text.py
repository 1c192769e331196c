"""Print checked post-processing SQL for DuckDB, with dpsql's semantics.

Division by zero, powers and logarithms without a value, and failing casts give NULL. A constant with a point is a
double, as in private queries. Overflow of doubles gives infinity in both. FLOOR, CEIL, ROUND and TRUNC to whole numbers
give integers. Everything else follows DuckDB.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from dpsql.errors import UnsupportedSQL
from dpsql.schema.columns import Type
from dpsql.sql.boundary.duckdb_functions import in_duckdbs
from dpsql.sql.syntax.dialect import PrivacyDialect, PrivateGenerator
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.syntax_errors import IN_UTC

_SQL_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "TEXT",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_DIVIDING = (exp.Div, exp.IntDiv, exp.Mod)
_PARTIAL = (exp.Ln, exp.Log, exp.Sqrt, exp.Pow, exp.Exp)
_PARTIAL_NAMES = frozenset({"LOG2", "LOG10", "ACOS", "ASIN", "ACOSH", "ATANH", "GAMMA", "LGAMMA"})
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_WRONG_OF_ONE: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Exp: ("NaN",),
    exp.Sqrt: ("NaN",),
    exp.Ln: ("NaN", "-Infinity"),
    exp.Log: ("NaN", "-Infinity"),
}
"""Results that become NULL. Infinity stays: the argument is infinite, or the result overflows."""
_ZONED = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
MOST_NODES = 2_000
"""Limit for a power, which is written twice because both arguments decide whether it has a value."""


class _StepGenerator(PrivateGenerator):
    """Generator of post-processing SQL."""

    NAMED_PLACEHOLDER_TOKEN = "$"
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = PrivateGenerator.TRANSFORMS


class _Steps(PrivacyDialect):
    Parser = PrivacyDialect.Parser
    Generator = _StepGenerator


_DIALECT = _Steps()


def printed(tree: exp.Expr) -> str:
    """Return the text of a tree. Raises UnsupportedSQL for parts that only private SELECTs may hold."""
    if any(isinstance(node, NamedArguments | PrivacyClause) for node in tree.walk()):
        raise UnsupportedSQL("named arguments (name => value) and OPTIONS belong to releases, not to SQL over answers.")
    zoned = next((node for node in tree.find_all(exp.DataType) if node.this in _ZONED), None)
    if zoned is not None:
        raise UnsupportedSQL(f"the type {zoned.this.value} is not supported in SQL over answers.", hint=IN_UTC)
    try:
        return _DIALECT.generate(tree, identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:  # the generator would drop something
        function = re.search(r"\b[A-Z][A-Z_0-9]{2,}\b", str(error))
    what = f"{function[0]} in this form" if function else "a part of this query"
    raise UnsupportedSQL(f"{what} cannot be written for DuckDB, which runs SQL over answers.")


def meant(tree: exp.Expr, params: Params, used: set[str]) -> exp.Expr:
    """Return the tree with dpsql's semantics. Parameters become bound values, and their names are added to `used`."""
    known, tree = dict(params), in_duckdbs(tree)

    def changed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder):
            literal = known.get(node.name)
            if literal is None:
                return node
            used.add(node.name)
            return exp.Cast(this=node, to=exp.DataType.build(_SQL_TYPES[literal.type], dialect="duckdb"))
        return _one(node)

    nodes = [each for each in tree.walk() if _concerns(each)]
    for node in reversed(nodes):  # inner nodes first
        replacement = changed(node.copy())
        if node is tree:
            tree = replacement
        else:
            node.replace(replacement)
    return tree


def _concerns(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return not node.args.get("is_string") and "." in str(node.this)
    changed = isinstance(node, (exp.Placeholder, *_DIVIDING, *_PARTIAL)) or type(node) is exp.Cast or _is_partial(node)
    return changed or _is_rounding(node)


def _is_rounding(node: exp.Expr) -> bool:
    """Return whether a function gives whole numbers here and doubles in DuckDB."""
    digits = node.args.get("decimals")
    none = digits is None or isinstance(digits, exp.Neg) or (isinstance(digits, exp.Literal) and digits.this == "0")
    return isinstance(node, exp.Floor | exp.Ceil | exp.Round | exp.Trunc) and none


def _is_partial(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in _PARTIAL_NAMES


def _one(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return exp.Literal.number(text if "e" in text.lower() else f"{text}e0")
    if isinstance(node, _DIVIDING):
        node.set("expression", exp.Nullif(this=exp.Paren(this=node.expression), expression=exp.Literal.number("0")))
        return node
    if type(node) is exp.Cast:
        return exp.TryCast(**node.args)
    if _is_rounding(node):  # NaN is no integer: NULL
        return exp.TryCast(this=node, to=exp.DataType.build("HUGEINT", dialect="duckdb"))
    if isinstance(node, exp.Pow):
        return _power(node)
    names = {"LOG2": exp.Log, "LOG10": exp.Log}
    kind = names.get(str(node.this).upper()) if isinstance(node, exp.Anonymous) else type(node)
    two = isinstance(node, exp.Log) and node.args.get("expression") is not None
    for word in _NOT_FINITE if kind is None or two else _WRONG_OF_ONE.get(kind, _NOT_FINITE):
        node = _unless(node, word)
    return node


def _unless(node: exp.Expr, word: str) -> exp.Expr:
    """Return NULL where a double is the special value `word`: NaN or an infinity."""
    return exp.Nullif(this=node, expression=exp.Cast(this=exp.Literal.string(word), to=exp.DataType.build("DOUBLE")))


def _power(node: exp.Pow) -> exp.Expr:
    """Return a power that is NULL for 0 to a negative exponent and where no real result exists."""
    base, exponent = node.this, node.expression
    if isinstance(exponent, exp.Literal):  # the usual case: no sign
        return _unless(node, "NaN")
    if sum(1 for _ in node.walk()) > MOST_NODES:
        raise UnsupportedSQL(
            "POWER of so long expressions is not supported in SQL over answers.",
            hint="Compute its arguments in a sub-query, and write POWER(x, y) over that.",
        )
    zero = exp.Literal.number("0")
    defined = exp.Or(
        this=exp.NEQ(this=exp.Paren(this=base.copy()), expression=zero),
        expression=exp.GTE(this=exp.Paren(this=exponent.copy()), expression=zero.copy()),
    )
    return exp.Case(ifs=[exp.If(this=defined, true=_unless(node, "NaN"))])
