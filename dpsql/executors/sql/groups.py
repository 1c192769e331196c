"""Group membership of rows: a column for each key of a plan, with the place in a public list if the key has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.exact import ExactPlan
from dpsql.executors.correlated_keys import PublicKeyRows
from dpsql.executors.keyed_hash import limbs_of_key
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.executors.sql.limits import Hashed
from dpsql.executors.sql.row_values import MOST_CASES, Lists, big, with_code, with_code_of
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.executors.sql.scans import with_default
from dpsql.plan.expressions import Call, Column, Expr, Fact, walk
from dpsql.plan.nodes import Source
from dpsql.plan.query import GroupKey, axes_of
from dpsql.plan.row_local import INEXACT
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING
from dpsql.sql.bind.inexact_keys import inexact_in, made_of


def keyed(plan: ExactPlan, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, list[str]]:
    """Return the rows that are in a group, with a column for each key, and the names of these columns. If rows are
    already groups, all of them stay: an engine would apply the condition to every row before grouping."""
    names: list[str] = []
    for key in plan.keys:
        rows, name = _key(key, plan.source, rows, writer, lists)
        names.append(name)
    for axis in axes_of(plan.keys):
        if len(axis.keys) > 1:
            own, together = [names[place] for place in axis.keys], PublicKeyRows(axis, plan.keys)
            rows, names[axis.keys[0]] = _held_together(together, own, rows, writer, lists)
    listed = [(key, name) for name, key in zip(names, plan.keys, strict=True) if key.values is not None]
    if listed and not lists.few:
        inside = " AND ".join(_is_listed(key, name, rows, writer) for key, name in listed)
        rows = replace(rows, text=writer.select("*", rows.text, f" WHERE {inside}"))
    return rows, names


def _key(key: GroupKey, source: Source, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, str]:
    if key.values is not None:
        return placed(key, source, rows, writer, lists)
    rows = writer.ready(rows, [key.expr])
    name = writer.names.fresh("g")
    text = writer.key_text(key.expr, rows)
    if key.expr.type.opaque:
        raise MissingFeature("groups of a type without values")
    if key.expr.type in (Type.DATE, Type.TIMESTAMP):
        text = writer.dialect.whole(text, key.expr.type)
    return replace(rows, text=writer.select(f"*, {text} AS {name}", rows.text)), name


def _held_together(
    together: PublicKeyRows, own: Sequence[str], rows: Rows, writer: Writer, lists: Lists
) -> tuple[Rows, str]:
    """Return the rows with a new place column for the first of several correlated keys: NULL if no public row has all
    of their values. `own`: the places of the keys."""
    row: str | None = None
    for step in together.steps:
        text = row
        for key, size in zip(step.keys, step.sizes, strict=True):
            text = own[key] if text is None else f"({text}) * {big(size)} + {own[key]}"
        assert text is not None  # a step has at least one key
        rows, number = writer.with_column(rows, text, "t")
        public = GroupKey(Column(number, Type.INTEGER, Fact(EVERYTHING)), tuple(step.known.tolist()))
        rows, row = with_code_of(public, number, rows, writer, lists)
    return writer.with_column(rows, f"CASE WHEN {row} IS NOT NULL THEN {own[0]} END", "g")


def _is_listed(key: GroupKey, place: str, rows: Rows, writer: Writer) -> str:
    """Return the condition that a row is in a listed group. For few texts it compares stored cells, which an engine can
    do while reading them; a NULL there counts as its default."""
    texts = key.values or ()
    few = 0 < len(texts) <= MOST_CASES and key.together is None
    few = few and None not in texts  # if NULL is listed, all other values are NULL
    if not (few and isinstance(key.expr, Column) and key.expr.type is Type.TEXT):
        return f"{place} IS NOT NULL"
    held = rows.columns[key.expr.table, key.expr.name]
    cell, text = rows.raw.get(held, (held, held))
    values = [writer.dialect.literal(each, Type.TEXT) for each in texts]
    alike = [f"{cell} = {value}" for value in values]
    stands_for = [f"{cell} IS NULL"] if any(text == with_default(cell, value) for value in values) else []
    return f"({' OR '.join([*alike, *stands_for])})"


def placed(key: GroupKey, source: Source, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, str]:
    """Return the rows with the place of a key in its public list, whose values another library computed."""
    function = inexact_in(key.expr, made_of(source))
    power = key.expr.type is Type.REAL and any(_is_power(each) for each in walk(key.expr))
    if function is not None or power:
        raise MissingFeature(f"groups by the last bits of {function or key.expr} (ROUND it)")
    return with_code(key, rows, writer, lists)


def hashed_keys(plan: ExactPlan, names: Sequence[str]) -> list[Hashed]:
    """Return the hashed columns of a group."""
    return [
        (name, _as_held(key.expr.type) if key.values is None else Type.INTEGER, limbs_of_key(key))
        for name, key in zip(names, plan.keys, strict=True)
    ]


def _is_power(expr: Expr) -> bool:
    """Return whether an expression is a power, whose last bit may differ between libraries even for whole exponents."""
    return isinstance(expr, Call) and expr.function.name in INEXACT


def _as_held(kind: Type) -> Type:
    """Return INTEGER for dates and times, which groups hold as numbers."""
    return Type.INTEGER if kind in (Type.DATE, Type.TIMESTAMP) else kind
