"""The rows of a source, some at a time, where those of one privacy unit alone are more than are to be held at once.

Only joins make more rows: those in which a left row meets several right ones are made in pieces. What every other node
makes of a row follows from that row and from relations that are held whole, so it does not matter in which blocks rows
come. What of a unit's rows follows from all of them, whether their pairs are too many, is found in a pass before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpsql.executors.pandas.database import Database, filtered, united, with_mark
from dpsql.executors.pandas.joins.pairing import PairingJoin, marked, meetings, most_pairs
from dpsql.executors.pandas.relations import Relation, Units, merged_units
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, Source, Union, Windows


def hold(database: Database, source: Source) -> None:
    """Run what `blocks` needs whole: right sides of joins, rows that are asked about, groups and windows of a unit. The
    database holds them from now on; raises what that raises."""
    if isinstance(source, Join | Mark):
        whole = source.right if isinstance(source, Join) else source.inner
        database.given[id(whole)] = database.relation(whole)
        hold(database, source.left if isinstance(source, Join) else source.input)
    elif isinstance(source, Filter):
        hold(database, source.input)
    elif isinstance(source, Union):
        for branch in source.branches:
            hold(database, branch.input)
    elif isinstance(source, PerUnit | Windows):
        database.given[id(source)] = database.relation(source)


def blocks(database: Database, source: Source, most: int) -> Iterator[Relation]:
    """The rows of a source of one unit, once `hold` was called: at least one block, and no row in two."""
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
        if allowed is None:  # whether rows are looked up depends on the right side alone
            allowed = right.units is None or _within(database, node, settled, most)
        meeting = PairingJoin.of(node, left if node.outer else left.settled(), settled)
        if not allowed:
            meeting.runs.pairs[:] = 0
        yield from meeting.in_pieces(most)


def _within(database: Database, node: Join, right: Relation, most: int) -> bool:
    """Whether the unit's pairs are within their limit, as `leave_out_heavy_units` has it."""
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
    """Each block as rows of the union: its units by the values that all branches have, as when they stand together."""
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
    """The units of a source, as they are told apart; which row is whose does not matter here."""
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
