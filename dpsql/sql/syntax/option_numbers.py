"""Evaluate options and named arguments written as 1/10, 12 * 1000 or :name.

The computation is exact, in fractions, and the results stand in the tree as literals before anything reads them: a
query's cost depends on its text and parameters only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from dpsql.errors import InvalidParameter, did_you_mean
from dpsql.schema.columns import Type
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement, span_of

_LARGEST = 10**40
_DIGITS = 40
_OPERATIONS: Mapping[type[exp.Expr], Callable[[Fraction, Fraction], Fraction]] = {
    exp.Add: lambda one, other: one + other,
    exp.Sub: lambda one, other: one - other,
    exp.Mul: lambda one, other: one * other,
    exp.Div: lambda one, other: one / other,
}


def with_numbers(statement: Statement, params: Params, used: set[str]) -> Statement:
    """Replace each constant expression among the options with a literal. used: receives parameter names. Raises
    InvalidParameter."""
    if not any(_computed(each) for each in _values(statement.select)):
        return statement
    select = statement.select.copy()
    for node in [each for each in _values(select) if _computed(each)]:
        literal = _literal(node, statement, params, used)
        if literal is not None:
            node.replace(literal)
    return replace(statement, select=select)


def _values(select: exp.Expr) -> list[exp.Expr]:
    """Return the value nodes of options and named arguments, with pairs split."""
    holders = [each for each in select.walk() if isinstance(each, NamedArguments | PrivacyClause)]
    given = [pair.expression for each in holders for pair in each.expressions]
    return [
        part for value in given for part in (value.expressions if isinstance(value, exp.Tuple) else [value])
    ]  # fmt: skip


def _computed(node: exp.Expr) -> bool:
    return isinstance(node, (*_OPERATIONS, exp.Paren, exp.Placeholder)) or (
        isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal)
    )


def _literal(node: exp.Expr, statement: Statement, params: Params, used: set[str]) -> exp.Expr | None:
    """Return the number as a literal at its position, or None if it is no number."""
    number = _number(node, statement, params, used)
    if number is None:
        return None
    literal = exp.Literal.number(_written(abs(number)))
    span = span_of(statement.sql, node)
    if span is not None:
        literal.meta.update({"start": span.start, "end": span.end})
    return exp.Neg(this=literal) if number < 0 else literal


def _number(node: exp.Expr, statement: Statement, params: Params, used: set[str]) -> Fraction | None:
    if isinstance(node, exp.Paren):
        return _number(node.this, statement, params, used)
    if isinstance(node, exp.Neg):
        inner = _number(node.this, statement, params, used)
        return None if inner is None else -inner
    if isinstance(node, exp.Placeholder):
        return _parameter(node, statement, params, used)
    if isinstance(node, exp.Literal):
        return _of_text(node)
    operation = _OPERATIONS.get(type(node))
    sides = [None, None] if operation is None else [
        _number(each, statement, params, used) for each in (node.this, node.expression)
    ]  # fmt: skip
    one, other = sides
    if operation is None or one is None or other is None or (isinstance(node, exp.Div) and other == 0):
        return None
    found = operation(one, other)
    return found if abs(found.numerator) < _LARGEST and found.denominator < _LARGEST else None


def _of_text(node: exp.Literal) -> Fraction | None:
    if node.is_string or len(node.name) > _DIGITS:
        return None
    try:
        number = Decimal(node.name)
    except InvalidOperation:
        return None
    return Fraction(number) if abs(number.adjusted()) < _DIGITS else None


def _parameter(node: exp.Placeholder, statement: Statement, params: Params, used: set[str]) -> Fraction | None:
    name = str(node.this)
    known = dict(params)
    if name not in known:
        near = did_you_mean(name, list(known))
        raise InvalidParameter(
            f"no value for :{name}.{near}", span=span_of(statement.sql, node), hint=f'Pass params={{"{name}": ...}}.'
        )
    value = known[name]
    if value.value is None or not value.type.numeric:
        return None
    used.add(name)
    return Fraction(repr(value.value)) if value.type is Type.REAL else Fraction(int(value.value))


def _written(number: Fraction) -> str:
    """Return the number in digits: integers exactly, others as the nearest double."""
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
