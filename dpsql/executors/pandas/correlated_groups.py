"""Groups of keys, some of them correlated in rows of public tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsql.core.exact import ExactPlan
from dpsql.executors.correlated_keys import PublicKeyRows
from dpsql.executors.pandas.groups import Codes, Groups, KeyCodes, group_rows, key_codes
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.expressions import Vector
from dpsql.plan.query import axes_of


def group_rows_together(plan: ExactPlan, rows: Relation) -> Groups:
    """Return the plan's groups over its source's rows: rows of a public table are coded as one key, by place."""
    keys = [key_codes(key, rows) for key in plan.keys]
    axes = axes_of(plan.keys)
    together = [None if len(axis.keys) == 1 else PublicKeyRows(axis, plan.keys) for axis in axes]
    codes = [
        keys[axis.keys[0]] if table is None else _coded([keys[place] for place in axis.keys], table)
        for axis, table in zip(axes, together, strict=True)
    ]
    groups = group_rows(plan, rows, codes)

    def values(chosen: Codes) -> tuple[Vector, ...]:
        out: dict[int, Vector] = {}
        for axis, table, vector in zip(axes, together, groups.values(chosen), strict=True):
            if table is None:
                out[axis.keys[0]] = vector
                continue
            for place, column in zip(axis.keys, table.columns, strict=True):
                out[place] = keys[place].values.at(column[vector.values])
        return tuple(out[place] for place in range(len(keys)))

    return Groups(groups.read, groups.cells, groups.complete, values)


def _coded(keys: Sequence[KeyCodes], together: PublicKeyRows) -> KeyCodes:
    """Return codes by the place of a row among the public ones."""
    places = Vector(np.arange(len(together.columns[0])))
    return KeyCodes(places, lambda start, stop: together([key.read(start, stop) for key in keys]), complete=False)
