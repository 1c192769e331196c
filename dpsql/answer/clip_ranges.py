"""Clip ranges of an explanation: of aggregated values, contributions of units, and declared columns."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.answer.explanation_tree import Clip
from dpsql.answer.query_wording import QueryWording, value_where
from dpsql.plan.expressions import columns
from dpsql.plan.nodes import filters_of, scans_of
from dpsql.release.release import Release


def clips_of(release: Release, plain: QueryWording) -> tuple[Clip, ...]:
    """Return each clip once, in the order of computation: values, contributions of units, and columns that are read."""
    found = {(clip.of, clip.adds): clip for clip in (*_values(release, plain), *_of_units(release, plain))}
    for clip in _declared(release):
        found.setdefault((clip.of, clip.adds), clip)
    return tuple(found.values())


def _values(release: Release, plain: QueryWording) -> Iterator[Clip]:
    """Yield the clips of arguments that are summed or selected from."""
    for m in () if release.provisional else release.analysis.measured:
        if m.sum is None or m.of not in ("rows", "choice"):
            continue
        for expr, fact in zip(m.aggregation.arguments, (m.argument, m.other or m.argument), strict=False):
            yield Clip(plain.expr((value_where(expr) or (expr,))[0]), fact.range)


def _of_units(release: Release, plain: QueryWording) -> Iterator[Clip]:
    """Yield the clips of each unit's contribution to a group, if it is bounded."""
    for m in release.analysis.measured:
        if m.of == "total" or (m.of == "mean" and m.aggregation.per_unit is not None):
            held = m.count if m.sum is None else m.sum
            yield Clip(plain.aggregation(m.aggregation), held.range, "total" if m.of == "total" else "average")


def _declared(release: Release) -> Iterator[Clip]:
    """Yield the declared bounds of columns of private tables that the query reads."""
    source = release.query.plan.input
    tables = {scan.name: scan.table for scan in scans_of(source)}
    read = [argument for m in release.analysis.measured for argument in m.aggregation.arguments]
    for column in (column for expr in (*read, *filters_of(source)) for column in columns(expr)):
        table = tables.get(column.table)
        if table is not None and not table.public:
            bounds = table.by_name[column.name.casefold()].bounds
            if bounds is not None:
                yield Clip(column, bounds, type=column.type)
