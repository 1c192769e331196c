"""Post-processing SQL for simulated noise: one text for many runs, and the noise of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from dpsql.plan.expressions import Expr, Slot, walk
from dpsql.plan.query_plan import ReleasePlan
from dpsql.plan.redraws import KNOWN, ROUGH, RUN, RUNS, Noise
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.sql.boundary.noise_of_outputs import outputs_of
from dpsql.sql.boundary.noise_of_selects import Selects
from dpsql.sql.boundary.noise_scopes import Rows, UnknownNoise

LONGEST = 20_000
"""Maximum length of an annotated text, in characters."""

Listed = tuple[str, exp.Query, exp.TableAlias | None]
"""A CTE: name, query, and column names."""


@dataclass(frozen=True)
class RedrawnStatement:
    """A statement rewritten for many runs: its tree, its CTEs, and the noise of its columns."""

    tree: exp.Query
    commons: tuple[Listed, ...]
    columns: tuple[Noise, ...]


def redrawn(
    tree: exp.Query, commons: Sequence[Listed], releases: Sequence[ReleasePlan], public: Mapping[str, TableSchema]
) -> RedrawnStatement | None:
    """Return the statement for many runs, or None if simulation applies to nothing in it."""
    copied, copies = tree.copy(), [(name, query.copy(), alias) for name, query, alias in commons]
    selects = _with_relations(releases, public)
    try:
        for name, query, alias in copies:
            selects.known[name] = _renamed(selects.rows(query, None), alias)
        rows = selects.rows(copied, None)
    except UnknownNoise:
        return None
    if not rows.steady or not any((each.smooth or each.single) and not each.known for each in rows.columns):
        return None
    queries_of_all = exp.Tuple(expressions=[copied, *(query for _, query, _ in copies)])
    selects.note()
    _put_in_runs(queries_of_all, releases)
    noted, *queries = queries_of_all.expressions
    if sum(len(each.sql(unsupported_level=ErrorLevel.IGNORE)) for each in queries_of_all.expressions) > LONGEST:
        return None
    listed = tuple((name, query, alias) for (name, _, alias), query in zip(copies, queries, strict=True))
    return RedrawnStatement(noted, listed, rows.columns)


def _with_relations(releases: Sequence[ReleasePlan], public: Mapping[str, TableSchema]) -> Selects:
    selects = Selects()
    for release in releases:
        selects.known[release.relation] = _of_release(release, selects)
    for name, schema in public.items():
        columns = selects.names.numbered(KNOWN for _ in schema.columns)
        selects.known[name] = Rows(tuple(each.name.casefold() for each in schema.columns), columns)
    return selects


def _of_release(release: ReleasePlan, selects: Selects) -> Rows:
    """Return a release as a relation: known keys and noisy values.

    If noise selected the groups, simulated noise would select others; values then have intervals one by one only.
    """
    query, keys = release.query, len(release.query.plan.keys)
    hidden = _is_narrowed(release) or query.plan.public_cells is None
    exprs = [query.finish.outputs[each.output].expr for each in release.columns]
    columns, outputs = [], outputs_of(query)
    for each, expr in zip(release.columns, exprs, strict=True):
        noisy = bool(query.stages) or any(not 0 <= index < keys for index in _slots(expr))
        smooth = not hidden and outputs.smooth(expr)
        leaf = Noise(smooth=smooth, single=True, leaves=frozenset([(release.relation, each.name)]))
        columns.append(KNOWN if not noisy else leaf if each.type.numeric else ROUGH)
    numbered = selects.names.numbered(columns)
    shown = {expr.index: each.column for expr, each in zip(exprs, numbered, strict=True) if isinstance(expr, Slot)}
    all_shown = not query.stages and shown.keys() >= set(range(keys))
    key = frozenset().union(*(shown[place] for place in range(keys))) if all_shown else None
    return Rows(tuple(each.name.casefold() for each in release.columns), numbered, key, hidden)


def _is_narrowed(release: ReleasePlan) -> bool:
    """Return whether noisy values may have selected its rows."""
    finish = release.query.finish
    return bool(finish.having or finish.distinct or finish.offset or finish.limit is not None or release.query.stages)


def _slots(expr: Expr) -> Iterator[int]:
    return (part.index for part in walk(expr) if isinstance(part, Slot))


def _renamed(rows: Rows, alias: exp.TableAlias | None) -> Rows:
    """Return a relation under the column names of a CTE."""
    names = tuple(each.name.casefold() for each in alias.args.get("columns") or []) if alias is not None else ()
    return replace(rows, names=(*names, *rows.names[len(names) :]))


def _put_in_runs(held: exp.Expr, releases: Sequence[ReleasePlan]) -> None:
    """Replace each relation of a release with its rows in one run."""
    by_name = {each.relation: each for each in releases}
    for table in [each for each in held.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]:
        if table.name in by_name:
            table.replace(_of_run(table, by_name[table.name]))


def _of_run(table: exp.Table, release: ReleasePlan) -> exp.Subquery:
    """Return the rows of one run, to replace a relation."""
    select = exp.Select(
        expressions=[exp.column(exp.to_identifier(each.name, quoted=True)) for each in release.columns],
        from_=exp.From(this=exp.Table(this=exp.to_identifier(table.name, quoted=True))),
        where=exp.Where(this=exp.EQ(this=exp.column(RUN), expression=exp.column(RUN, table=RUNS))),
    )
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    return exp.Subquery(this=select, alias=alias.copy())


def in_runs(sql: str) -> str:
    """Return the text for all runs: each run's result, after a run number."""
    return f'SELECT "{RUNS}"."{RUN}", "__of_run".* FROM "{RUNS}", LATERAL ({sql}) AS "__of_run"'
