"""Options of WITH DIFFERENTIAL_PRIVACY and named arguments of an aggregate: read from the tree, checked, typed.

Values are literals, so that a query's cost is known from its text. This module does not know the caller's or owner's
limits, or the table. Those are compared later, and `places` then gives the position in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar

from sqlglot import exp

from dpsql.core.loss import as_delta, as_epsilon, show
from dpsql.errors import InvalidPrivacyParameter, Span, SQLSyntaxError, UnsupportedSQL, did_you_mean
from dpsql.plan.functions.rules import LARGEST_INTEGER
from dpsql.plan.options import AggregateOptions, GroupSelection, Options, ReportFormat
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause
from dpsql.sql.syntax.parse import span_of

LARGEST_LIMIT = 10**18 - 1
_LONGEST_QUOTE = 40
Word = TypeVar("Word", bound=StrEnum)
Check = Callable[[str, Any, Span | None], object]
"""Function from a name, value and position to the checked value."""


def read_options(node: PrivacyClause, sql: str) -> Options:
    """Return the options of a clause. Raises SQLSyntaxError, InvalidPrivacyParameter."""
    return checked_options(*_read(node, sql, _OPTIONS))


def read_aggregate_options(node: NamedArguments, sql: str) -> AggregateOptions:
    """Return the named arguments of a call. Raises SQLSyntaxError, UnsupportedSQL, InvalidPrivacyParameter."""
    return checked_aggregate_options(*_read(node, sql, _ARGUMENTS))


# From nodes to values: this part checks their form, the checks below their size.


@dataclass(frozen=True)
class _WrittenOption:
    """A name and value as written; `kind` lists the alternatives."""

    name: str
    node: exp.Expr
    span: Span | None
    kind: _Kind

    def wrong(self, wanted: str) -> SQLSyntaxError:
        rule = _RULES[self.name]
        choice = f"{rule.choice}\n" if rule.choice else ""
        hint = f"Write {self.name} {self.kind.sign} {rule.example}.\n{choice}{self.kind.all}"
        return SQLSyntaxError(f"{self.name} takes {wanted}, got {_shape(self.node)}.", span=self.span, hint=hint)


@dataclass(frozen=True)
class _Kind:
    """Options or named arguments: their noun, the sign before a value, and the available names."""

    noun: str
    sign: str
    names: tuple[str, ...]

    @property
    def all(self) -> str:
        return f"The {self.noun}s are {', '.join(self.names)}."


def _read(node: exp.Expr, sql: str, kind: _Kind) -> tuple[dict[str, Any], dict[str, Span]]:
    values: dict[str, Any] = {}
    places: dict[str, Span] = {}
    for each in node.expressions:
        name, span = each.this.name.lower(), span_of(sql, each.this)
        if name not in kind.names:
            near = did_you_mean(name, kind.names)
            raise SQLSyntaxError(f'no {kind.noun} "{_short(each.this.name)}".{near}', span=span, hint=kind.all)
        if name in values:
            raise SQLSyntaxError(f"{name} is given twice.", span=span, hint=kind.all)
        given = _WrittenOption(name, each.expression, span_of(sql, each.expression) or span, kind)
        values[name] = _RULES[name].read(given)
        if given.span is not None:
            places[name] = given.span
    return values, places


def _number(given: _WrittenOption) -> Decimal:
    number = _decimal(given.node)
    if number is None:
        raise given.wrong("a number")
    return number


def _whole(given: _WrittenOption) -> int:
    number = _decimal(given.node)
    if number is None or not given.node.name.isdecimal():  # the name of -1 is that of 1
        raise given.wrong("a whole number")
    return int(number)


def _pair(given: _WrittenOption) -> Interval:
    numbers = [_decimal(each) for each in given.node.expressions] if isinstance(given.node, exp.Tuple) else []
    lower, upper = numbers if len(numbers) == 2 else (None, None)
    if lower is None or upper is None:
        raise given.wrong("a pair of numbers")
    if lower > upper:
        raise SQLSyntaxError(
            f"{given.name}: the lower bound is above the upper one.",
            span=given.span,
            hint="The lower bound comes first: (lower, upper).",
        )
    return Interval(_bound(lower), _bound(upper))


def _bound(number: Decimal) -> Number:
    return int(number) if number.as_tuple().exponent == 0 else float(number) + 0.0  # no -0.0


def _name(given: _WrittenOption) -> str:
    if not isinstance(given.node, exp.Var | exp.Identifier):
        raise given.wrong("a column's name")
    return given.node.name


def _word(given: _WrittenOption) -> str:
    text = isinstance(given.node, exp.Literal) and given.node.is_string
    if not text and not isinstance(given.node, exp.Var | exp.Identifier):
        raise given.wrong("a word")
    return given.node.name


def _decimal(node: exp.Expr) -> Decimal | None:
    """Return a literal's number, optionally with a minus sign; None for anything else, and for absurdly long
    numbers."""
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or literal.is_string or len(literal.name) > _LONGEST_QUOTE:
        return None
    try:
        number = Decimal(literal.name)
    except InvalidOperation:  # an exponent beyond any machine's
        return None
    return number if node is literal else number.copy_negate()


def _shape(node: exp.Expr) -> str:
    """Describe the node found in place of the expected one."""
    literal = node.this if isinstance(node, exp.Neg) else node
    if isinstance(literal, exp.Literal) and not literal.is_string:
        text = ("-" if node is not literal else "") + literal.name
        return text if len(text) <= _LONGEST_QUOTE else "a number too long to be meant"
    return next((words for kinds, words in _SHAPES if isinstance(node, kinds)), "an expression")


_SHAPES: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Literal,), "text in quotes"),
    ((exp.Var, exp.Identifier), "a name"),
    ((exp.Column,), "a name with its table's"),
    ((exp.Boolean,), "TRUE or FALSE"),
    ((exp.Null,), "NULL"),
    ((exp.Placeholder, exp.Parameter), "a parameter"),
    ((exp.Tuple,), "a list"),
)


# From values to checked values, for text and code alike.


def checked_options(values: Mapping[str, Any], places: Mapping[str, Span] = MappingProxyType({})) -> Options:
    """Return the checked options. Raises InvalidPrivacyParameter for epsilon or delta, SQLSyntaxError for the rest,
    each at its position in the text."""
    options = Options(**_checked(values, places), places=places)
    if options.group_selection_strategy is GroupSelection.PUBLIC_GROUPS:
        _refuse_selection_of_public_groups(options)
    if options.epsilon is not None and (options.group_selection_epsilon or 0) > options.epsilon:
        raise InvalidPrivacyParameter(
            f"group_selection_epsilon is a part of epsilon, so it cannot be more than {show(options.epsilon)}.",
            span=places.get("group_selection_epsilon"),
        )
    return options


def _refuse_selection_of_public_groups(options: Options) -> None:
    for name in ("min_privacy_units_per_group", "group_selection_epsilon"):
        if getattr(options, name) is not None:
            raise SQLSyntaxError(
                f"{name} has no meaning with PUBLIC_GROUPS: all public groups are shown.",
                span=options.places.get(name),
                hint=f"Leave out {name}, or choose another group_selection_strategy.",
            )


def checked_aggregate_options(
    values: Mapping[str, Any], places: Mapping[str, Span] = MappingProxyType({})
) -> AggregateOptions:
    """Return the checked named arguments. Raises as `checked_options` does, and UnsupportedSQL."""
    options = AggregateOptions(**_checked(values, places), places=places)
    if options.contribution_bounds_per_row is not None and options.contribution_bounds_per_group is not None:
        raise SQLSyntaxError(
            "contribution_bounds_per_row and contribution_bounds_per_group cannot hold at once.",
            span=list(places.values())[-1] if places else None,
            hint="Give the bounds of a row's value, or those of what one privacy unit adds to a group.",
        )
    return options


def _checked(values: Mapping[str, Any], places: Mapping[str, Span]) -> dict[str, Any]:
    """Check values in the order of the rules, so that the first error does not depend on the text's order."""
    given = [name for name in _RULES if values.get(name) is not None]
    return {name: _RULES[name].check(name, values[name], places.get(name)) for name in given}


def _loss(read: Callable[[object, str], Fraction]) -> Check:
    def check(name: str, value: object, place: Span | None) -> Fraction:
        try:
            return read(value, name)
        except InvalidPrivacyParameter as error:
            raise InvalidPrivacyParameter(error.message, span=place, hint=error.hint) from None

    return check


def _limit(name: str, value: object, place: Span | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_LIMIT:
        raise SQLSyntaxError(f"{name} must be a whole number from 1 to 10^18 - 1.", span=place)
    return value


def _column(name: str, value: object, place: Span | None) -> str:
    if not isinstance(value, str) or not value:
        raise SQLSyntaxError(f"{name} must be the name of a column.", span=place)
    return value


def _bounds(name: str, value: object, place: Span | None) -> Interval:
    if not isinstance(value, Interval) or not value.magnitude <= LARGEST_INTEGER:
        raise SQLSyntaxError(f"{name} must be two numbers within +/-2^62.", span=place)
    return value


def _selection(name: str, value: object, place: Span | None) -> GroupSelection:
    return _one_of(GroupSelection, name, value, place)


def _format(name: str, value: object, place: Span | None) -> ReportFormat:
    if str(value).upper() == "PROTO":
        hint = f"Write {name} => 'JSON', or leave it out."
        raise UnsupportedSQL(f"{name} 'PROTO' is not supported: a cell is a number or JSON.", span=place, hint=hint)
    return _one_of(ReportFormat, name, value, place)


def _one_of(words: type[Word], name: str, value: object, place: Span | None) -> Word:
    member = words.__members__.get(str(value).upper())
    if member is None:
        near = did_you_mean(str(value), words.__members__)
        listed = ", ".join(words.__members__)
        raise SQLSyntaxError(f'no {name} "{_short(value)}".{near}', span=place, hint=f"There is {listed}.")
    return member


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "..."


@dataclass(frozen=True)
class _Rule:
    """Rule for one option or named argument: how to read and check it, an example, and advice for another value."""

    read: Callable[[_WrittenOption], object]
    check: Check
    example: str
    choice: str = ""


_A_LIMIT = "The number is an example: choose a limit that most people stay below."
_BOUNDS = "These bounds are an example: choose bounds that most values lie between."
_RULES: Mapping[str, _Rule] = {
    "epsilon": _Rule(_number, _loss(as_epsilon), "0.5"),
    "delta": _Rule(_number, _loss(as_delta), "1e-6"),
    "privacy_unit_column": _Rule(_name, _column, "person_id"),
    "max_groups_contributed": _Rule(_whole, _limit, "3", _A_LIMIT),
    "max_rows_contributed": _Rule(_whole, _limit, "20", _A_LIMIT),
    "group_selection_strategy": _Rule(_word, _selection, "LAPLACE_THRESHOLD"),
    "min_privacy_units_per_group": _Rule(_whole, _limit, "10"),
    "group_selection_epsilon": _Rule(_number, _loss(as_epsilon), "0.1"),
    "contribution_bounds_per_row": _Rule(_pair, _bounds, "(0, 100)", _BOUNDS),
    "contribution_bounds_per_group": _Rule(_pair, _bounds, "(0, 100)", _BOUNDS),
    "report_format": _Rule(_word, _format, "'JSON'"),
}
_OPTIONS = _Kind("option", "=", tuple(each.name for each in fields(Options) if each.name in _RULES))
_ARGUMENTS = _Kind("named argument", "=>", tuple(each.name for each in fields(AggregateOptions) if each.name in _RULES))
