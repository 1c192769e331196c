"""The parts of a declared partition that a query reads, for parallel composition across queries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from dpsql.core.ledger.account import Part
from dpsql.plan.expressions import Call, Column, Expr, Literal, conjuncts
from dpsql.plan.nodes import Scan, Source, filters_of, scans_of
from dpsql.schema.columns import Type

MOST_PARTS = 1000
"""A query about more parts than this is charged as a query about all rows."""


def parts_of(source: Source, state: Callable[[str], str | None]) -> tuple[Part, ...]:
    """Return the parts that contain every row that can reach the aggregate; empty if the query text does not confine
    the rows to parts. state: maps a folded table name to a text that, together with the version, differs whenever the
    table's rows may differ; None if that is unknown.

    Proof: a predicate of `filters_of` is TRUE for each row above it, and one of its conjuncts states that the
    partition's column equals one of some constants of the text. So rows with other values do not change the exact
    answer, whatever the data are. The column's value is the one that the scan returns, after declared facts. For the
    same row it is the same in all queries of the same declaration and data, which the name of the partition identifies:
    column, facts, version, and the state of the rows at the time of the query. A row that has since moved to another
    value pays for both.
    """
    private = [scan for scan in scans_of(source) if not scan.table.public]
    if len(private) != 1 or private[0].table.partition is None:
        return ()
    (scan,) = private
    table = scan.table
    column = table.by_name[str(table.partition).casefold()]
    confined: set[str] | None = None
    for predicate in filters_of(source):
        for term in conjuncts(predicate):
            values = _confined(term, scan, column.name)
            if values is not None:
                confined = set(values) if confined is None else confined & set(values)
    now = state(table.name.casefold())
    if confined is None or now is None or len(confined) > MOST_PARTS:
        return ()
    facts = hashlib.sha256(f"{column!r}{table.version!r}{now}".encode()).hexdigest()[:16]
    name = f"{column.name}#{facts}"
    parts = {Part(table.name.casefold(), name, each) for each in confined if each}
    return tuple(sorted(parts)) or (Part(table.name.casefold(), name, "nothing"),)


def _confined(term: Expr, scan: Scan, column: str) -> tuple[str, ...] | None:
    """Return constants one of which the column equals if the term is TRUE; None if the term does not confine it."""
    if not isinstance(term, Call):
        return None
    name, args = term.function.name, term.args
    if name == "or":
        arms = [_confined(arg, scan, column) for arg in args]
        found = [arm for arm in arms if arm is not None]
        return tuple(each for arm in found for each in arm) if len(found) == len(arms) else None
    if name == "eq" and isinstance(args[0], Literal):
        args = (args[1], args[0])
    if name in ("eq", "in") and _is(args[0], scan, column):
        as_reals = any(each.type is Type.REAL for each in args)  # IN compares all of its list in one type
        texts = [_text(each, args[0].type, as_reals=as_reals) for each in args[1:]]
        known = tuple(text for text in texts if text is not None)
        return known if len(known) == len(texts) else None
    return None


def _is(expr: Expr, scan: Scan, column: str) -> bool:
    return isinstance(expr, Column) and expr.table == scan.name and expr.name == column


def _text(expr: Expr, kind: Type, *, as_reals: bool) -> str | None:
    """Return a canonical text for a constant compared with a column of this type, the same for all constants that equal
    one value of the column ("" for NULL, which equals none); None if that cannot be guaranteed."""
    if not isinstance(expr, Literal):
        return None
    value = expr.value
    if value is None:
        return ""
    if expr.type is not kind and {expr.type, kind} != {Type.INTEGER, Type.REAL}:
        return None
    if as_reals and Type.INTEGER in (expr.type, kind) and isinstance(value, int | float) and abs(value) >= 2**53:
        return None  # doubles represent every whole number only below 2^53
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{'number' if kind in (Type.INTEGER, Type.REAL) else kind}:{value}"
