"""Row limits below joins, as text: each privacy unit's rows of least keyed hash, the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.executors.keyed_hash import HashKey, limbs_of
from dpsql.executors.sql.limits import Hashed, Limiter
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.plan.nodes import RowLimit


def limited(node: RowLimit, rows: Rows, writer: Writer, named: dict[str, str], key: HashKey) -> Rows:
    """Return the kept rows. named: the named SELECTs of the statement."""
    rows, columns = writer.with_values(rows, node.compared)
    hashed = [(name, each.type, limbs_of(each.type)) for name, each in zip(columns, node.compared, strict=True)]
    if not writer.dialect.counts_first:
        return _least(node.most, rows, hashed, writer, key)
    # Most units have no more rows than the limit. Counting rows is faster than hashing and sorting them.
    names, unit = writer.names, str(rows.unit)
    every, above, of = names.fresh("every"), names.fresh("above"), names.fresh("u")
    listed = ", ".join(dict.fromkeys([*rows.columns.values(), *rows.values.values(), unit]))
    named[every] = f"SELECT {listed} FROM {rows.text}"
    named[above] = f"SELECT {unit} AS {of} FROM {every} GROUP BY {unit} HAVING COUNT(*) > {node.most}"
    bare = Rows(every, rows.columns, rows.unit, rows.unit_kind, rows.values, rows.bounded)
    many = replace(bare, text=writer.select("*", f"{every} SEMI JOIN {above} ON {unit} = {of}"))
    least = _least(node.most, many, hashed, writer, key)
    few = f"SELECT {listed} FROM {every} ANTI JOIN {above} ON {unit} = {of}"
    return replace(bare, text=f"(SELECT {listed} FROM {least.text} UNION ALL {few}) AS {names.fresh('q')}")


def _least(most: int, rows: Rows, hashed: Sequence[Hashed], writer: Writer, key: HashKey) -> Rows:
    """Hash each row, and keep the least of each unit."""
    limiter = Limiter(rows, ((), hashed), writer, key)
    limiter.keep(limiter.least_rows(most, by_group=False))
    return replace(rows, text=limiter.rows.text)
