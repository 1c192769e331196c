"""Partition selection: show all public groups, or the groups of enough people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from dpsql.core.loss import show
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.errors import (
    InvalidArgument,
    InvalidPrivacyParameter,
    Span,
    UnknownColumn,
    UnknownGroups,
    UnsupportedSQL,
    as_written,
)
from dpsql.plan.expressions import Column, Expr, columns, unfiltered
from dpsql.plan.nodes import scans_of
from dpsql.plan.options import Options
from dpsql.plan.query import MOST_DERIVED_CELLS, GroupKey, Query, number_of_cells
from dpsql.schema.columns import MOST_KEYS, Type
from dpsql.schema.frozen import dataclass

PUBLIC, LAPLACE, GAUSSIAN, GEOMETRIC = (
    "PUBLIC_GROUPS",
    "LAPLACE_THRESHOLD",
    "GAUSSIAN_THRESHOLD",
    "TRUNCATED_GEOMETRIC",
)
_NOISE = {LAPLACE: "laplace", GAUSSIAN: "gaussian"}
"""The noise of the counts that are compared with a threshold."""


@dataclass(frozen=True)
class Selection:
    """The method of partition selection. `strategy`: one of GoogleSQL's names. `every_cell`: all public groups are
    shown; `hides`: groups of few people are not. `epsilon`: the cost of the selection, from the text; `least`: groups
    of fewer people are never shown."""

    strategy: str
    every_cell: bool
    hides: bool
    epsilon: Fraction | None = None
    least: int | None = None
    place: Span | None = None
    asked: bool = False
    """True if the text names the strategy."""

    @property
    def by_threshold(self) -> bool:
        """True if a noisy count is compared with a threshold."""
        return self.hides and self.strategy != GEOMETRIC

    @property
    def mechanism(self) -> str | None:
        """The noise that the strategy requires."""
        return _NOISE.get(self.strategy)

    def own_share(self, epsilon: Fraction, aggregates: int) -> Fraction:
        """Return the epsilon of the group selection: 0 where the threshold uses the count of an aggregate, otherwise
        the value in the text or a share as large as each aggregate's. Raises InvalidPrivacyParameter."""
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
    """Return the selection of a query's groups. Raises a QueryRefused for options that do not go together."""
    public = query.plan.public_cells is not None
    if not analysis.private or not query.plan.keys:
        _check(query, options, PUBLIC)
        return Selection(PUBLIC, every_cell=public, hides=False)
    asked = options.group_selection_strategy if options is not None else None
    strategy = str(asked) if asked is not None else _by_itself(analysis, mechanism, public=public)
    _check(query, options, PUBLIC if query.plan.sets else strategy)
    if strategy == PUBLIC and not public:
        raise unknown_groups(query)
    wanted = _NOISE.get(strategy)
    if asked is not None and wanted is not None and mechanism not in ("auto", wanted):
        raise InvalidArgument(f"{strategy} goes with mechanism={wanted!r}, got {as_written(mechanism)}.")
    if strategy == PUBLIC:
        return Selection(PUBLIC, every_cell=True, hides=False)
    if options is None:
        return Selection(strategy, every_cell=False, hides=True)
    epsilon, least = options.group_selection_epsilon, options.min_privacy_units_per_group
    place = options.places.get("group_selection_epsilon")
    said = asked is not None
    return Selection(strategy, every_cell=False, hides=True, epsilon=epsilon, least=least, place=place, asked=said)


def _by_itself(analysis: Analysis, mechanism: str, *, public: bool) -> str:
    """Return the default strategy: the truncated geometric distribution is optimal on its own, but next to a count a
    threshold is free."""
    if public:
        return PUBLIC
    if mechanism == "gaussian":
        return GAUSSIAN
    return LAPLACE if any(each.of != "choice" for each in analysis.measured) else GEOMETRIC


def _check(query: Query, options: Options | None, strategy: str) -> None:
    """Refuse options without effect."""
    if options is None:
        return
    if options.privacy_unit_column is not None:
        _check_unit(query, options.privacy_unit_column, options.places.get("privacy_unit_column"))
    if strategy == PUBLIC:
        _check_public(query, options)


def _check_unit(query: Query, column: str, place: Span | None) -> None:
    """Refuse a unit other than the declared one."""
    tables = [scan.table for scan in scans_of(query.plan.input) if not scan.table.public]
    units = sorted(table.unit.column for table in tables if table.unit is not None)
    names = {each.name.casefold() for table in tables for each in table.columns}
    if column.casefold() not in names:
        raise UnknownColumn(f'privacy_unit_column: no column "{column}".', span=place)
    if column.casefold() in {unit.casefold() for unit in units}:
        return
    if not units:
        raise UnsupportedSQL(
            f"privacy_unit_column {column}: no unit is declared, so each row is one.",
            span=place,
            hint=f'The owner of the table declares it: unit="{column}".',
        )
    raise UnsupportedSQL(
        f"privacy_unit_column {column} is not the declared unit, {', '.join(units)}.", span=place, hint="Leave it out."
    )


def _check_public(query: Query, options: Options) -> None:
    """Refuse options of group selection where all groups are shown."""
    what = "public groups: all of them are shown" if query.plan.keys else "a query without GROUP BY"
    for name in ("min_privacy_units_per_group", "group_selection_epsilon"):
        if getattr(options, name) is not None:
            raise UnsupportedSQL(f"{name} has no use for {what}.", span=options.places.get(name), hint="Leave it out.")
    asked, place = options.group_selection_strategy, options.places.get("group_selection_strategy")
    if asked in (None, PUBLIC):
        return
    if query.plan.sets:
        raise UnsupportedSQL(
            f"{asked} hides groups, and those of ROLLUP, CUBE and GROUPING SETS add up: all are shown.",
            span=place,
            hint="Leave it out.",
        )


_HIDDEN = "groups of {few} are then hidden."
_DELTA = Fraction(1, 10**6)
"""The delta suggested in a refusal of unknown groups, if the budget has it."""


def _refusal(message: str, key: GroupKey, before: str, after: str = _HIDDEN) -> UnknownGroups:
    """Return a refusal of unknown groups; `before` states the alternatives to a delta."""
    about = {"before delta": before, "after delta": after}
    return UnknownGroups(message, span=key.span, hint=_with_delta(about), about=about)


def _with_delta(about: Mapping[str, str], delta: Fraction = _DELTA, few: str = "few people") -> str:
    asked = "1e-6 where the budget has it" if delta == _DELTA else show(delta)
    return f"{about['before delta']}allow delta={asked}: {about['after delta'].format(few=few)}"


def with_delta(refusal: UnknownGroups, left: Fraction | None, few: Callable[[Fraction], str]) -> UnknownGroups:
    """Return the refusal, suggesting no more delta than the budget has left (None: no known budget). It describes the
    hidden groups with the text that `few` returns for a delta, "" if unknown."""
    if "before delta" not in refusal.about:
        return refusal
    delta = left if left is not None and 0 < left < _DELTA else _DELTA
    hint = _with_delta(refusal.about, delta, few(delta) or "few people")
    return UnknownGroups(refusal.message, span=refusal.span, hint=hint, about=refusal.about)


def unknown_groups(query: Query) -> UnknownGroups:
    """Return the refusal of groups that are not public."""
    keys = [key for key in query.plan.keys if key.values is None]
    if not keys:
        return _too_many(query.plan.keys)
    key, expr = keys[0], keys[0].expr
    read = columns(expr)
    unlisted = [column for column in read if not unfiltered(column).range.bounded]
    if read and not unlisted:
        times = [column for column in read if column.type.temporal]
        fewer = (
            f'Declare bounds={{"{times[0].name}": ("2020-01-01", "2024-12-31")}}, or put them into WHERE,'
            if times
            else f"Group by something coarser, such as {_coarser(expr, read[0])},"
        )
        return _refusal(f"GROUP BY {expr} has too many public values to show them all.", key, f"{fewer}\nor ")
    message = f"GROUP BY {expr} would reveal which values of {expr} occur."
    tables = {scan.name for scan in scans_of(query.plan.input)}
    made = [column.name for column in read if column.table not in tables]
    if made:
        some = f"WHERE {made[0]} BETWEEN 0 AND 20 (costs no delta, shows empty ones\ntoo), or "
        return _refusal(message, key, f"Say which there can be, as in {some}")
    name = unlisted[0].name if unlisted else ""
    declare = f'List them: keys={{"{name}": [...]}} (costs no delta, shows empty ones too),\n' if unlisted else ""
    return _refusal(message, key, f"{declare}or ")


def _coarser(expr: Expr, column: Column) -> str:
    """Return a key with few public values from a numeric column with bounds: integer steps of a round size."""
    held, step = unfiltered(column).range, 1 if column.type is not Type.INTEGER else 10
    while (held.upper - held.lower) / step > _FEW_STEPS:
        step *= 10
    if column.type is not Type.INTEGER:
        return f"FLOOR({column} / {step})" if step > 1 else f"FLOOR({column})"
    return f"{column} // {step}" if str(expr) != f"{column} // {step}" else f"{column} // {10 * step}"


_FEW_STEPS = 100


def _too_many(keys: Sequence[GroupKey]) -> UnknownGroups:
    """Return the refusal of keys that are public, but have too many combinations."""
    names, cells = ", ".join(str(key.expr) for key in keys), number_of_cells(keys)
    most = MOST_KEYS if all(key.listed for key in keys) else MOST_DERIVED_CELLS
    return _refusal(
        f"GROUP BY {names} has {cells:,} combinations of public values, more than are shown at once ({most:,}).",
        keys[0],
        "Group by fewer columns, or ",
        "combinations of {few}\nare then hidden.",
    )
