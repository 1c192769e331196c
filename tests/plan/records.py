"""One function of the language over columns and constants: what its kernel makes of them, and what DuckDB does."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import duckdb
import numpy as np

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import (
    DTYPES,
    Call,
    Column,
    Expr,
    Fact,
    Function,
    Literal,
    Slot,
    Vector,
    blank,
    call,
)
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from tests.plan.samples import FULL, KINDS, NARROW, SAMPLES, STORED, randoms

MOST_ROWS = 2_500

ULPS = {  # libraries of mathematics differ in the last bits
    **dict.fromkeys(("cbrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan"), 4),
    **dict.fromkeys(("log_base", "power"), 8),
}


@dataclass(frozen=True)
class Use:
    """A function and types that it takes."""

    function: Function
    kinds: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(self.kinds)})"


@dataclass(frozen=True)
class Arg:
    """An argument: the cells of a column and what is declared of them, or a constant."""

    kind: Type
    cells: tuple[Any, ...]
    fact: Fact | None = None

    def expr(self, name: str) -> Expr:
        if self.fact is None:
            return Literal(self.cells[0], self.kind)
        return Column(name, self.kind, self.fact)


def column(kind: Type, cells: Sequence[Any], held: Interval | None = None) -> Arg:
    """A column of those samples that lie in the range."""
    held = held or FULL[kind]
    inside = tuple(cell for cell in cells if cell is None or kind is Type.TEXT or cell in held)
    return Arg(kind, inside, Fact(held, nullable=None in inside))


def grid(use: Use, ranges: dict[Type, Interval], *, nullable: bool) -> list[Arg]:
    """Columns that stand for every mix of samples in the ranges."""
    most = max(3, int(MOST_ROWS ** (1 / max(1, len(use.kinds)))))
    cells = {
        kind: [cell for cell in SAMPLES[kind] if column(kind, [cell], ranges.get(kind)).cells]
        for kind in set(use.kinds)
    }
    return [
        column(kind, [cell for cell in cells[kind] if nullable or cell is not None][:most], ranges.get(kind))
        for kind in use.kinds
    ]


def with_constants(use: Use, draw: random.Random) -> list[Arg]:
    """A column and constants after it."""
    cells = SAMPLES[use.kinds[0]][draw.randrange(2) :]  # with NULL or without
    first = column(use.kinds[0], cells, draw.choice(({}, NARROW)).get(use.kinds[0]))
    pools = {kind: [*SAMPLES[kind][:8], 38, 10] if kind is Type.INTEGER else SAMPLES[kind] for kind in use.kinds}
    return [first, *(Arg(kind, (draw.choice(pools[kind]),)) for kind in use.kinds[1:])]


def typed(use: Use, args: Sequence[Arg]) -> Call | None:
    return call(use.function, *(arg.expr(f"a{place}") for place, arg in enumerate(args)))


def rows_of(args: Sequence[Arg]) -> list[tuple[Any, ...]]:
    return list(product(*(arg.cells for arg in args)))


def vector(kind: Type, cells: Sequence[Any]) -> Vector:
    """The cells as a block; what stands in the cell of a NULL is some value of the type."""
    filler = next((cell for cell in reversed(cells) if cell is not None), blank(kind))
    values = np.array([filler if cell is None else cell for cell in cells], dtype=DTYPES[kind])
    return Vector(values, np.array([cell is not None for cell in cells], dtype=bool) if None in cells else None)


def computed(expr: Call, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the kernel makes of the rows, None for NULL."""
    blocks = {
        arg.name: vector(arg.type, [row[place] for row in rows])
        for place, arg in enumerate(expr.args)
        if isinstance(arg, Column)
    }

    def read(leaf: Any) -> Vector:
        assert isinstance(leaf, Column | Slot)
        return blocks[leaf.name]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(expr, read, len(rows))
    size = 1 if not expr.args else len(rows)
    assert found.values.dtype == DTYPES[expr.type]
    assert found.values.shape == (size,)
    if found.valid is not None:
        assert found.valid.dtype == np.bool_
        assert found.valid.shape == (size,)
    return [cell if valid else None for cell, valid in zip(found.values.tolist(), found.where_valid(), strict=True)]


def check_fact(expr: Call, rows: Sequence[tuple[Any, ...]], results: Sequence[Any]) -> None:
    """Every result is of its type, lies in the range, and is NULL only where it may be."""
    python = {Type.INTEGER: int, Type.REAL: float, Type.BOOLEAN: bool, Type.TEXT: str, Type.DATE: int,
              Type.TIMESTAMP: int}[expr.type]  # fmt: skip
    for row, result in zip(rows, results, strict=False):
        if result is None:
            assert expr.held.nullable, f"{expr} of {row} is NULL"
            continue
        assert type(result) is python, f"{expr} of {row} is {result!r}"
        assert not (isinstance(result, float) and math.isnan(result)), f"{expr} of {row} is NaN"
        if expr.type is not Type.TEXT:
            assert result in expr.held.range, f"{expr} of {row} is {result!r}, not in {expr.held.range}"
        if expr.type is Type.INTEGER:
            assert -(2**63) <= result < 2**63
        if expr.type.temporal:
            assert result in FULL[expr.type]


# DuckDB.


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    """A connection with the samples of each type as table s_TYPE(k, v)."""
    connection = duckdb.connect(config={"threads": 1})
    for kind in KINDS:
        connection.execute(f"CREATE TABLE s_{kind} (k INTEGER, v {STORED[kind]})")
        cells = [*SAMPLES[kind], *(cell for cell in randoms(kind) if cell not in SAMPLES[kind])]
        rows = [(place, spelt(kind, cell)) for place, cell in enumerate(cells)]
        connection.executemany(f"INSERT INTO s_{kind} VALUES (?, CAST(? AS {STORED[kind]}))", rows)
    return connection


@cache
def places(kind: Type) -> dict[Any, int]:
    cells = [*SAMPLES[kind], *(cell for cell in randoms(kind) if cell not in SAMPLES[kind])]
    return {key(cell): place for place, cell in enumerate(cells)}


def key(cell: Any) -> Any:
    """-0.0 and 0.0 are two samples."""
    return (cell, math.copysign(1, cell)) if isinstance(cell, float) else cell


def spelt(kind: Type, cell: Any) -> Any:
    """The cell as DuckDB's driver takes it."""
    if cell is None or kind in (Type.BOOLEAN, Type.TEXT):
        return cell
    if kind is Type.REAL:
        return repr(cell)
    return show_date(cell) if kind is Type.DATE else show_timestamp(cell) if kind is Type.TIMESTAMP else str(cell)


def sql_of(arg: Arg, name: str) -> str:
    """A column, or a constant: an integer is bare, as a DECIMAL's digits must be."""
    if arg.fact is not None:
        return f"{name}.v"
    cell = spelt(arg.kind, arg.cells[0])
    if isinstance(arg.cells[0], int) and arg.kind is Type.INTEGER:
        return f"({cell})" if arg.cells[0] < 0 else str(cell)
    text = "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'"
    return f"CAST({text} AS {STORED[arg.kind]})"


def selected(args: Sequence[Arg], *texts: str) -> list[tuple[Any, ...]]:
    """What DuckDB makes of texts over a0.v, a1.v, for the same rows in the same order."""
    names = [(f"a{place}", arg) for place, arg in enumerate(args) if arg.fact is not None]
    sql = f"SELECT {', '.join(texts)}"
    if names:
        chosen = {name: [places(arg.kind)[key(cell)] for cell in arg.cells] for name, arg in names}
        sql += " FROM " + ", ".join(f"s_{arg.kind} {name}" for name, arg in names)
        sql += " WHERE " + " AND ".join(f"{name}.k IN ({', '.join(map(str, cells))})" for name, cells in chosen.items())
        sql += " ORDER BY " + ", ".join(f"list_position({cells}, {name}.k)" for name, cells in chosen.items())
    return oracle().execute(sql).fetchall()


def asked(expr: Call, args: Sequence[Arg]) -> list[Any]:
    """What DuckDB makes of the record's SQL."""
    written = expr.function.emit(
        [arg.kind for arg in args], expr.type, [sql_of(arg, f"a{place}") for place, arg in enumerate(args)]
    )
    rows = selected(args, as_number(expr.type, written), f"typeof({written})")
    assert {kind for _, kind in rows} <= {STORED[expr.type]}, written
    return [cell for cell, _ in rows]


def as_number(kind: Type, written: str) -> str:
    """Dates and timestamps as the integers that they are here."""
    if kind is Type.DATE:
        return f"CAST({written} - DATE '1970-01-01' AS BIGINT)"
    return f"epoch_us({written})" if kind is Type.TIMESTAMP else written


def same(function: Function, ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return type(ours) is type(theirs) and bool(ours == theirs)
    if ours == theirs:
        return True
    ulps = ULPS.get(function.name, 0)
    return math.isfinite(ours) and math.isfinite(theirs) and abs(ours - theirs) <= ulps * math.ulp(ours)


def check(use: Use, args: Sequence[Arg]) -> bool:
    """Kernel, fact and SQL agree; False where these arguments are not taken."""
    expr = typed(use, args)
    if expr is None:
        return False
    rows = rows_of(args)
    results = computed(expr, rows)
    check_fact(expr, rows, results)
    wrong = [
        f"{expr} of {row} is {ours!r}, in DuckDB {theirs!r}"
        for row, ours, theirs in zip(rows, results, asked(expr, args), strict=True)
        if not same(use.function, ours, theirs)
    ]
    assert not wrong, f"{len(wrong)} of {len(rows)}: " + "; ".join(wrong[:8])
    return True
