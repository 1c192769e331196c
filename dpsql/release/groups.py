"""Which groups of an answer are shown: all public ones, or those of enough people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.loss import show
from dpsql.core.sensitivity import Analysis
from dpsql.errors import (
    InvalidArgument,
    InvalidPrivacyParameter,
    Span,
    UnknownColumn,
    UnknownGroups,
    UnsupportedSQL,
    as_written,
)
from dpsql.plan.expressions import columns, unfiltered
from dpsql.plan.nodes import scans_of
from dpsql.plan.options import Options
from dpsql.plan.query import MOST_DERIVED_CELLS, Query
from dpsql.schema.columns import MOST_KEYS

PUBLIC, LAPLACE, GAUSSIAN, GEOMETRIC = (
    "PUBLIC_GROUPS",
    "LAPLACE_THRESHOLD",
    "GAUSSIAN_THRESHOLD",
    "TRUNCATED_GEOMETRIC",
)


@dataclass(frozen=True)
class Selection:
    """`strategy`: one of GoogleSQL's words. `every_cell`: all public groups are shown; `hides`: those of few people are
    not. `epsilon`: what choosing may cost, as the text says; `least`: groups of fewer people are never to be shown."""

    strategy: str
    every_cell: bool
    hides: bool
    epsilon: Fraction | None = None
    least: int | None = None
    place: Span | None = None

    @property
    def by_threshold(self) -> bool:
        """A noisy count is compared with a threshold."""
        return self.hides and self.strategy != GEOMETRIC

    @property
    def mechanism(self) -> str | None:
        """The noise that the strategy asks for."""
        return {LAPLACE: "laplace", GAUSSIAN: "gaussian"}.get(self.strategy)

    def own_share(self, epsilon: Fraction, aggregates: int) -> Fraction:
        """What choosing groups costs by itself: nothing where an aggregate's own count is compared with a threshold,
        else what the text says or a share as large as that of each aggregate. Raises InvalidPrivacyParameter."""
        if not self.hides or (self.by_threshold and self.epsilon is None):
            return Fraction(0)
        own = self.epsilon if self.epsilon is not None else epsilon / (aggregates + 1)
        if own > epsilon or (own == epsilon and aggregates):
            left = "more than" if own > epsilon else "all of"
            raise InvalidPrivacyParameter(
                f"group_selection_epsilon {show(own)} is {left} the query's epsilon {show(epsilon)}.",
                span=self.place,
                hint="Give it less; the aggregates have what it leaves.",
            )
        return own


def selection_of(query: Query, analysis: Analysis, options: Options | None, mechanism: str) -> Selection:
    """How the groups of a query are chosen. Raises a QueryRefused for options that do not go together."""
    public = query.plan.public_cells is not None
    if not analysis.private or not query.plan.keys:
        _check(query, options, PUBLIC)
        return Selection(PUBLIC, every_cell=public, hides=False)
    said = options.group_selection_strategy if options is not None else None
    if said is not None:
        strategy = str(said)
    elif public:
        strategy = PUBLIC
    elif mechanism == "gaussian":
        strategy = GAUSSIAN
    else:
        counted = any(each.of != "choice" for each in analysis.measured)
        strategy = LAPLACE if counted else GEOMETRIC  # by itself the optimal one, beside a count a free one
    _check(query, options, PUBLIC if query.plan.sets else strategy)
    if strategy == PUBLIC and not public:
        raise unknown_groups(query)
    wanted = {LAPLACE: "laplace", GAUSSIAN: "gaussian"}.get(strategy)
    if said is not None and wanted is not None and mechanism not in ("auto", wanted):
        raise InvalidArgument(f"{strategy} goes with mechanism={wanted!r}, got {as_written(mechanism)}.")
    if strategy == PUBLIC:
        return Selection(PUBLIC, every_cell=True, hides=False)
    if options is None:
        return Selection(strategy, every_cell=False, hides=True)
    epsilon, least = options.group_selection_epsilon, options.min_privacy_units_per_group
    place = options.places.get("group_selection_epsilon")
    return Selection(strategy, every_cell=False, hides=True, epsilon=epsilon, least=least, place=place)


def _check(query: Query, options: Options | None, strategy: str) -> None:
    """Refuse options that mean nothing here."""
    if options is None:
        return
    column = options.privacy_unit_column
    if column is not None:
        tables = [scan.table for scan in scans_of(query.plan.input) if not scan.table.public]
        units = {table.unit.column.casefold() for table in tables if table.unit is not None}
        names = {each.name.casefold() for table in tables for each in table.columns}
        if column.casefold() not in names:
            raise UnknownColumn(
                f'privacy_unit_column: no column "{column}".', span=options.places.get("privacy_unit_column")
            )
        if column.casefold() not in units:
            declared = ", ".join(sorted(table.unit.column for table in tables if table.unit is not None))
            raise UnsupportedSQL(
                f"privacy_unit_column {column} is not the declared unit, {declared}."
                if declared
                else f"privacy_unit_column {column}: no unit is declared, so each row is one.",
                span=options.places.get("privacy_unit_column"),
                hint=f'The owner of the table declares it: unit="{column}".' if not declared else "Leave it out.",
            )
    if strategy == PUBLIC:
        what = "public groups: all of them are shown" if query.plan.keys else "a query without GROUP BY"
        for name in ("min_privacy_units_per_group", "group_selection_epsilon"):
            if getattr(options, name) is not None:
                raise UnsupportedSQL(
                    f"{name} has no use for {what}.", span=options.places.get(name), hint="Leave it out."
                )
        said, place = options.group_selection_strategy, options.places.get("group_selection_strategy")
        if said not in (None, PUBLIC) and query.plan.sets:
            raise UnsupportedSQL(
                f"{said} hides groups, and those of ROLLUP, CUBE and GROUPING SETS add up: all are shown.",
                span=place,
                hint="Leave it out.",
            )
        if said not in (None, PUBLIC) and not query.plan.keys:
            raise UnsupportedSQL(f"{said} chooses groups, and there is no GROUP BY.", span=place, hint="Leave it out.")


_ALLOW = "allow delta=1e-6 where the budget has it: "
"""What every refusal of unknown groups says last."""


def within_delta(refusal: UnknownGroups, left: Fraction) -> UnknownGroups:
    """The refusal, asking for no more delta than a budget has left."""
    if not 0 < left < Fraction(1, 10**6):
        return refusal
    hint = refusal.hint.replace(_ALLOW, f"allow delta={show(left)}: ")
    return UnknownGroups(refusal.message, span=refusal.span, hint=hint)


def unknown_groups(query: Query) -> UnknownGroups:
    """The refusal of groups that are not public."""
    keys = [key for key in query.plan.keys if key.values is None]
    if not keys:
        names = ", ".join(str(key.expr) for key in query.plan.keys)
        cells = math.prod(len(key.values or ()) for key in query.plan.keys)
        return UnknownGroups(
            f"GROUP BY {names} has {cells:,} combinations of public values, more than are shown at once "
            f"({MOST_KEYS if all(key.listed for key in query.plan.keys) else MOST_DERIVED_CELLS:,}).",
            span=query.plan.keys[0].span,
            hint="Group by fewer columns, or allow delta=1e-6 where the budget has it: combinations of few people\n"
            "are then hidden.",
        )
    expr = keys[0].expr
    if columns(expr) and all(unfiltered(column).range.bounded for column in columns(expr)):
        times = [column for column in columns(expr) if column.type.temporal]
        fewer = (
            f'Declare bounds={{"{times[0].name}": ("2020-01-01", "2024-12-31")}}, or put them into WHERE,'
            if times
            else f"Group by something coarser, such as {columns(expr)[0]} // 10,"
        )
        return UnknownGroups(
            f"GROUP BY {expr} has too many public values to show them all.",
            span=keys[0].span,
            hint=f"{fewer}\nor allow delta=1e-6 where the budget has it: groups of few people are then hidden.",
        )
    made = [column for column in columns(expr) if column.table.startswith("(")]
    if made:
        name = made[0].name
        return UnknownGroups(
            f"GROUP BY {expr} would reveal which values of {expr} occur.",
            span=keys[0].span,
            hint=f"Say which there can be, as in WHERE {name} BETWEEN 0 AND 20 (costs no delta, shows empty ones\n"
            "too), or allow delta=1e-6 where the budget has it: groups of few people are then hidden.",
        )
    inner = [column for column in columns(expr) if not unfiltered(column).range.bounded]
    declare = f'List them: keys={{"{inner[0].name}": [...]}} (costs no delta, shows empty ones too),\n' if inner else ""
    return UnknownGroups(
        f"GROUP BY {expr} would reveal which values of {expr} occur.",
        span=keys[0].span,
        hint=f"{declare}or allow delta=1e-6 where the budget has it: groups of few people are then hidden.",
    )
