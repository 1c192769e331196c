"""The rows of a source in blocks, for one privacy unit whose rows are too many to be held at once.

Only joins make more rows: those in which a left row matches several right ones are made in pieces. For every other
node, the output of a row depends only on that row and on relations held as a whole, so the division into blocks does
not matter. Whether a unit's pairs are too many depends on all of its rows, and is found in an earlier pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpsql.executors.pandas.database import Database, filtered, united, with_mark
from dpsql.executors.pandas.joins.pairing import PairingJoin, marked, meetings, most_pairs
from dpsql.executors.pandas.relations import Relation, Units, merged_units
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, RowLimit, Source, Union, Windows


def hold(database: Database, source: Source) -> None:
    """Run the inputs that `blocks` needs as a whole: right sides of joins, inner rows of marks, groups, windows and
    limits of a unit. The database holds them from then on; raises the errors of running them."""
    if isinstance(source, Join | Mark):
        whole = source.right if isinstance(source, Join) else source.inner
        database.given[id(whole)] = database.relation(whole)
        hold(database, source.left if isinstance(source, Join) else source.input)
    elif isinstance(source, Filter):
        hold(database, source.input)
    elif isinstance(source, Union):
        for branch in source.branches:
            hold(database, branch.input)
    elif isinstance(source, PerUnit | Windows | RowLimit):
        database.given[id(source)] = database.relation(source)


def blocks(database: Database, source: Source, most: int) -> Iterator[Relation]:
    """Yield the rows of a source of one unit, after `hold`: at least one block, and each row once."""
    if isinstance(source, Filter):
        for rows in blocks(database, source.input, most):
            yield filtered(source, rows)
    elif isinstance(source, Join):
        yield from _joined(database, source, most)
    elif isinstance(source, Mark):
        yield from _marked(database, source, most)
    elif isinstance(source, Union):
        yield from _united(database, source, most)
    else:
        yield database.relation(source)


def _joined(database: Database, node: Join, most: int) -> Iterator[Relation]:
    right = database.relation(node.right)
    settled = right.settled()
    allowed: bool | None = None
    for left in blocks(database, node.left, most):
        found = database.looked_up(node, left, right)
        if found is not None:
            yield found
            continue
        if allowed is None:  # whether rows are looked up depends only on the right side
            allowed = right.units is None or _within(database, node, settled, most)
        meeting = PairingJoin.of(node, left if node.outer else left.settled(), settled)
        if not allowed:
            meeting.runs.pairs[:] = 0
        yield from meeting.in_pieces(most)


def _within(database: Database, node: Join, right: Relation, most: int) -> bool:
    """Return whether the unit's pairs are within their limit, as in `leave_out_heavy_units`."""
    pairs = rows = 0
    for left in blocks(database, node.left, most):
        meeting = PairingJoin.of(node, left if node.outer else left.settled(), right)
        pairs += int(meeting.runs.pairs.sum())
        rows += meeting.left.rows
    return pairs <= max(most_pairs(database.fan_out(node)), rows)


def _marked(database: Database, node: Mark, most: int) -> Iterator[Relation]:
    inner = database.relation(node.inner).settled()
    allowed = True
    if node.condition is not None and inner.units is not None:
        pairs = rows = 0
        for block in blocks(database, node.input, most):
            pairs += int(meetings(node, block, inner).pairs.sum())
            rows += block.rows
        allowed = pairs <= max(most_pairs(database.fan_out(node)), rows)
    for block in blocks(database, node.input, most):
        yield with_mark(node, block, marked(node, block, inner, allowed=allowed))


def _united(database: Database, node: Union, most: int) -> Iterator[Relation]:
    """Yield each block as rows of the union, with units by the values of all branches, as in the whole union."""
    nobody = np.zeros(0, dtype=np.int64)
    whose = [_units(database, branch.input) for branch in node.branches]
    for place, branch in enumerate(node.branches):
        alone = replace(node, branches=(branch,))
        for block in blocks(database, branch.input, most):
            rows = block.settled()
            relation = united(alone, [rows])
            units = [
                rows.units if at == place else each.at(nobody) for at, each in enumerate(whose) if each is not None
            ]
            relation.units = merged_units([each for each in units if each is not None]) if units else None
            yield relation


def _units(database: Database, source: Source) -> Units | None:
    """Return the units of a source by their values; the rows' codes do not matter here."""
    if isinstance(source, Union):
        nobody = np.zeros(0, dtype=np.int64)
        found = [_units(database, branch.input) for branch in source.branches]
        parts = [each.at(nobody) for each in found if each is not None]
        return merged_units(parts) if parts else None
    if isinstance(source, Join):
        return _units(database, source.left)
    if isinstance(source, Filter | Mark):
        return _units(database, source.input)
    return database.relation(source).units
