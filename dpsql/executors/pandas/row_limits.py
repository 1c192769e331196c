"""Row limits below joins: the rows of each privacy unit with the least keyed hash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsql.core.unit import ContributionBound
from dpsql.executors.keyed_hash import limbs_of
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.hashing import Hashes, combine, hash_key, hash_vector, numbers_of
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.units.bounding import Codes, keep_rows
from dpsql.plan.nodes import RowLimit


def limited(node: RowLimit, rows: Relation, key: bytes) -> Relation:
    """Return the kept rows. Rows of units within the limit are not hashed."""
    units = rows.units
    assert units is not None  # the stability of the node requires declared units
    hash_of = hash_key(key)

    def hashes(asked: Codes) -> Sequence[Hashes]:
        """Return the hashes of (unit, compared values); all rows of a unit are one group."""
        own, chosen = units.hashes(hash_of, asked), rows.at(asked)
        for expr in node.compared:
            own = combine(hash_of, [own, hash_vector(hash_of, evaluated(expr, chosen), limbs_of(expr.type))])
        numbers = numbers_of(own, hash_of.lanes)
        return numbers, numbers

    bound = ContributionBound(node.most, 1, node.most)
    kept = keep_rows(units.numbers().astype(np.int64, copy=False), None, bound, hashes, units.count)
    return rows if kept is None else rows.at(np.flatnonzero(kept))
