"""Several keys over one column of people's rows: the groups are the combinations that its values lead to, so that
months of a range of dates that begins in March have no January of the first year.

Proof that they may be shown: they are computed from the text and what is declared of the column. That they are
complete: the keys of a row are what they are of the column's value, all at once, and that is one of those gone through:
all that lie in its bounds, to which stored values are clipped; or, of a declared list, those of the key that is the
column itself, beside which a row with another value is in no group anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.plan.domains import MOST_TEXT, Domain, Domains
from dpsql.plan.earlier import reads_earlier
from dpsql.plan.expressions import Column, columns
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Key
from dpsql.sql.keys_together import held_in_rows

Row = tuple[Key, ...]


def keys_of_columns(keys: Sequence[GroupKey], domains: Domains) -> tuple[GroupKey, ...]:
    """The keys, those over the same column alone with the combinations that it gives them."""
    together = list(keys)
    first = 1 + max((key.together.number for key in keys if key.together is not None), default=-1)
    for number, (column, places) in enumerate(_by_column(keys), first):
        values = _values_of(column, [keys[place] for place in places], domains)
        rows = None if values is None else _rows([keys[place] for place in places], column, values, domains)
        for place, key in held_in_rows(places, rows, keys, number) if rows is not None else ():
            together[place] = key
    return tuple(together)


def _by_column(keys: Sequence[GroupKey]) -> Iterator[tuple[Column, list[int]]]:
    """The columns that several keys read alone, with the places of these."""
    by: dict[Column, list[int]] = {}
    for place, key in enumerate(keys):
        read = columns(key.expr)
        settled = key.values is not None and key.shown is None and key.together is None
        if settled and len(read) == 1 and not reads_earlier(key.expr):
            by.setdefault(read[0], []).append(place)
    return ((column, places) for column, places in by.items() if len(places) > 1)


def _values_of(column: Column, keys: Sequence[GroupKey], domains: Domains) -> Domain | None:
    """All values that a row in a group can have in a column; None where they are not known."""
    declared = domains.declared(column)
    if declared is not None and not declared.keys:
        return domains.counted(column)
    own = next((key.values for key in keys if key.expr == column), None)
    return None if own is None or None in own else own


def _rows(keys: Sequence[GroupKey], column: Column, values: Domain, domains: Domains) -> tuple[Row, ...] | None:
    """What the keys are of each value, each row once; None where there are too many texts."""
    cells = [domains.at(key.expr, column, values) for key in keys]
    if any(sum(len(each) for each in set(own) if isinstance(each, str)) > MOST_TEXT for own in cells):
        return None
    return tuple(dict.fromkeys(zip(*cells, strict=True)))
