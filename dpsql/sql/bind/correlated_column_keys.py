"""Several keys over one private column: the groups are the combinations that its values produce. Months of a date range
that starts in March have no January of the first year.

Proof that the combinations are public: they are computed from the text and the column's declarations.

Proof that the combinations are complete: all keys of a row are functions of the column's value, which is one of the
enumerated values. These are all values within its bounds, to which stored values are clipped. For a timestamp, they are
one value from each piece of time in which the keys are constant (time_pieces.py). For a declared list, they are the
values of the key that is the column itself: rows with other values are in no group anyway. A column of a sub-query
copies an expression over the same row: one expression below groups per unit, one for each branch of a union.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from dpsql.plan.domains import MOST_TEXT, Domain, Domains
from dpsql.plan.expressions import Column, Expr, Fact, call, columns, rebuild
from dpsql.plan.facts import fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import PerUnit, Source, Union, nodes_of
from dpsql.plan.prior_releases import reads_earlier
from dpsql.plan.query import GroupKey
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.correlated_keys import held_in_rows
from dpsql.sql.bind.time_pieces import MOST_INSTANTS, sample_instants

MOST_BRANCHES = 64
"""Maximum number of union branches through which key combinations are derived."""
Row = tuple[Key, ...]


def keys_of_columns(keys: Sequence[GroupKey], domains: Domains, source: Source) -> tuple[GroupKey, ...]:
    """Return the keys. Keys that all read one and the same column get the combinations of its values."""
    together = list(keys)
    first = 1 + max((key.together.number for key in keys if key.together is not None), default=-1)
    copies = _copies_in_rows(source) if len(keys) > 1 else {}
    for number, places in enumerate(_by_column(keys, copies), first):
        rows = _rows_of([keys[place].expr for place in places], [keys[place] for place in places], copies, domains)
        for place, key in held_in_rows(places, [*rows], keys, number) if rows is not None else ():
            together[place] = key
    return tuple(together)


def _copies_in_rows(source: Source) -> dict[Column, tuple[Expr, ...]]:
    """Return the columns that sub-queries produce, with their expressions over the underlying row or group's rows: one
    expression, or one for each branch of a union."""
    copies: dict[Column, tuple[Expr, ...]] = {}
    for node in nodes_of(source):
        if isinstance(node, PerUnit):
            copies.update({column: (key,) for column, key in zip(node.columns, node.keys, strict=False)})
        if isinstance(node, Union):
            branches = zip(*(branch.outputs for branch in node.branches), strict=True)
            copies.update(zip(node.columns, branches, strict=True))
    return copies


def _by_column(keys: Sequence[GroupKey], copies: Mapping[Column, Sequence[Expr]]) -> Iterator[list[int]]:
    """Yield the positions of keys that read one and the same column, in every branch of a union."""
    by: dict[tuple[Column | None, ...], list[int]] = {}
    for place, key in enumerate(keys):
        settled = key.values is not None and key.shown is None and key.together is None
        read = _columns_below(key.expr, copies) if settled and not reads_earlier(key.expr) else None
        if read is not None and any(read):
            by.setdefault(read, []).append(place)
    return (places for places in by.values() if len(places) > 1)


def _columns_below(expr: Expr, copies: Mapping[Column, Sequence[Expr]]) -> tuple[Column | None, ...] | None:
    """Return the one column that an expression reads in each union branch below (None: a constant), or None for
    several."""
    read = columns(expr)
    if len(read) > 1:
        return None
    if not read or read[0] not in copies:
        return (read[0] if read else None,)
    below: list[Column | None] = []
    for copied in copies[read[0]]:
        found = _columns_below(rebuild(expr, {read[0]: copied}), copies)
        if found is None or len(below) + len(found) > MOST_BRANCHES:
            return None
        below += found
    return tuple(below)


def _rows_of(
    exprs: Sequence[Expr], keys: Sequence[GroupKey], copies: Mapping[Column, Sequence[Expr]], domains: Domains
) -> Collection[Row] | None:
    """Return the distinct combinations of values of expressions over the same column."""
    read = list(dict.fromkeys(column for expr in exprs for column in columns(expr)))
    if read and all(column in copies for column in read):
        below = Domains(domains.declared, {}, domains.origins)  # outer filters constrain the copy, not the original
        branches = [
            _rows_of([rebuild(expr, dict(zip(read, of_branch, strict=True))) for expr in exprs], (), copies, below)
            for of_branch in zip(*(copies[column] for column in read), strict=True)
        ]
        found = [rows for rows in branches if rows is not None]
        return {row for rows in found for row in rows} if len(found) == len(branches) else None
    column = read[0] if read else Column("\0constant", Type.BOOLEAN, Fact(nullable=False))
    values = _values_of(column, exprs, keys, domains) if read else (True,)
    return None if values is None else _rows(exprs, column, values, domains)


def _values_of(column: Column, exprs: Sequence[Expr], keys: Sequence[GroupKey], domains: Domains) -> Domain | None:
    """Return column values that produce all combinations of the keys, or None if unknown."""
    declared = domains.declared(column)
    if declared is not None and declared.keys:
        own = next((key.values for key in keys if key.expr == column), None)
        return None if own is None or None in own else own
    limits = fact(column, domains.known)
    if not limits.range.bounded and not column.type.temporal:
        return None
    nulls = (None,) if limits.nullable else ()
    if column.type.temporal:
        values = _times(column, exprs, limits)
    elif column.type.discrete and limits.range.upper - limits.range.lower < MOST_INSTANTS:
        lower, upper = int(limits.range.lower), int(limits.range.upper)
        values = [bool(value) if column.type is Type.BOOLEAN else value for value in range(lower, upper + 1)]
    else:
        return None
    return None if values is None else (*values, *nulls)


def _times(column: Column, exprs: Sequence[Expr], limits: Fact) -> list[int] | None:
    """Return dates or timestamps of a range that produce all combinations of expressions over them."""
    dates = column.type is Type.DATE
    whole = DAYS if dates else MICROSECONDS
    first, last = int(max(limits.range.lower, whole.lower)), int(min(limits.range.upper, whole.upper))
    if first > last:
        return None
    if not dates:
        instants = sample_instants(exprs, column, first, last)
        return None if instants is None else instants.tolist()
    midnight = Column(
        "\0instant", Type.TIMESTAMP, Fact(Interval(first * MICROSECONDS_A_DAY, last * MICROSECONDS_A_DAY))
    )
    day = call(FUNCTIONS["timestamp_to_date"], midnight)
    assert day is not None  # it takes a timestamp
    over = [rebuild(expr, {column: day}) for expr in exprs]
    instants = sample_instants(over, midnight, first * MICROSECONDS_A_DAY, last * MICROSECONDS_A_DAY)
    return None if instants is None else np.unique(instants // MICROSECONDS_A_DAY).tolist()


def _rows(exprs: Sequence[Expr], column: Column, values: Domain, domains: Domains) -> Collection[Row] | None:
    """Return the distinct rows of key values, or None if the texts are too long."""
    cells = [domains.at(expr, column, values) for expr in exprs]
    if any(sum(len(each) for each in set(own) if isinstance(each, str)) > MOST_TEXT for own in cells):
        return None
    return dict.fromkeys(zip(*cells, strict=True))
