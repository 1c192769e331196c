"""Expressions over columns, block by block; an expression of a single text column runs on its dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

import numpy as np

from dpsql.executors.pandas.columns.gathering import one_after_the_other
from dpsql.executors.pandas.relations import Columns, Relation
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Fact, Function, Literal, Vector, call_of, columns, rebuild, walk
from dpsql.plan.text_lengths import is_cut, longest, reading_limit
from dpsql.plan.work import linear
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Evaluator = Callable[[int, int], Vector]
BLOCK = 32_768


@dataclass(frozen=True)
class Evaluation:
    """Reader of the columns of some expressions, including synthetic ones for looked-up parts; computes shared
    subexpressions once per block."""

    rows: Relation
    lifted: dict[str, Evaluator] = field(default_factory=dict)
    plain: list[Expr] = field(default_factory=list)
    """The expressions, with synthetic columns in them."""
    shared: dict[Expr, Vector | None] = field(default_factory=dict)
    block: list[tuple[int, int]] = field(default_factory=list)
    """The block whose values `shared` holds."""

    def lookup(self, column: Column, table: Vector, kind: Type, most: int | None = None) -> Column:
        """Return a synthetic column: `table`, with a cell for each code of the text column, gathered by code. most: the
        characters of its longest text."""
        codes = self.rows.encoded(column).codes
        table = Vector(np.ascontiguousarray(table.values), table.valid)
        name = f"\0{len(self.lifted)}"  # no column of a query can have this name
        self.lifted[name] = lambda start, stop: table.at(codes[start:stop])
        return Column(name, kind, Fact(most=most))

    def evaluator(self, expr: Expr) -> Evaluator:
        """Return a function (start, stop) -> the block of an expression."""
        expr = limited(expr)
        if isinstance(expr, Column):  # nothing to look up
            cells = self.rows.reader(expr)
            return lambda start, stop: evaluate(expr, lambda _column: cells(start, stop), stop - start)
        lifted: dict[Expr, Expr] = {part: self._lift(part) for part in _liftable(expr) if self._are_few(part)}
        plain = rebuild(expr, lifted) if lifted else expr
        readers = {each: self.lifted.get(each.name) or self.rows.reader(each) for each in columns(plain)}

        def run(start: int, stop: int) -> Vector:
            def read(column: Column) -> Vector:
                return readers[column](start, stop)

            return evaluate(plain, read, stop - start, self._shared_of(start, stop) if shares else None)

        shares = not _makes_texts(plain)
        self.plain.extend([plain] if shares else [])
        return run if shares else _in_pieces(run)

    def _shared_of(self, start: int, stop: int) -> dict[Expr, Vector | None] | None:
        if self.shared and self.block != [(start, stop)]:
            self.block[:] = [(start, stop)]
            self.shared.update(dict.fromkeys(self.shared))
        return self.shared or None

    def _are_few(self, expr: Expr) -> bool:
        """Return whether the distinct values of an expression's text column are not many more than the rows."""
        return len(self.rows.encoded(columns(expr)[0]).dictionary) <= 2 * self.rows.rows + PIECE

    def _lift(self, expr: Call) -> Column:
        column = columns(expr)[0]
        most = longest(expr) if expr.type is Type.TEXT else None
        return self.lookup(column, over_dictionary(expr, self.rows), expr.type, most)


def evaluator(expr: Expr, rows: Relation | Columns) -> Evaluator:
    """Return a function (start, stop) -> the block of an expression over those rows."""
    return Evaluation(Relation.of(rows)).evaluator(expr)


def evaluators(exprs: Iterable[Expr], rows: Relation) -> dict[Expr, Evaluator]:
    """Return the evaluators of several expressions, which share work within a block."""
    evaluation = Evaluation(rows)
    readers = {expr: evaluation.evaluator(expr) for expr in exprs}
    if len(evaluation.plain) > 1:
        times = Counter(part for expr in evaluation.plain for part in walk(expr) if isinstance(part, Call))
        evaluation.shared.update(dict.fromkeys(part for part, number in times.items() if number > 1))
    return readers


def evaluated(expr: Expr, rows: Relation) -> Vector:
    """Evaluate the expression over all rows, block by block."""
    read = evaluator(expr, rows)
    blocks = [read(start, min(start + BLOCK, rows.rows)) for start in range(0, rows.rows, BLOCK)] or [read(0, 0)]
    return one_after_the_other(blocks)


def text_column(expr: Expr) -> Column | None:
    """Return the only column that an expression reads, if it is text, otherwise None."""
    read = columns(expr)
    return read[0] if len(read) == 1 and read[0].type is Type.TEXT else None


def over_dictionary(expr: Expr, rows: Relation, most: int | None = None) -> Vector:
    """Evaluate the expression for each distinct value of its only text column, and last for NULL.

    Texts above `most` characters are NULL, so that their number bounds the memory."""
    column = text_column(expr)
    assert column is not None  # checked by callers
    dictionary = rows.encoded(column).dictionary
    expr = limited(expr)

    def run(start: int, stop: int) -> Vector:
        found = evaluate(expr, lambda _column: dictionary.at(slice(start, stop)), stop - start)
        return found if most is None or expr.type is not Type.TEXT else short_texts(found, most)

    return (_in_pieces(run) if _makes_texts(expr) else run)(0, len(dictionary))


def short_texts(vector: Vector, most: int) -> Vector:
    """Replace texts of more than `most` characters by NULL."""
    fits = np.fromiter((len(text) <= most for text in vector.values), dtype=bool, count=len(vector))
    if fits.all():
        return vector
    return Vector(np.where(fits, vector.values, ""), fits & vector.where_valid())


def _short(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return short_texts(vectors[0], int(vectors[1].values[0])) if len(vectors[0]) else vectors[0]


_SHORT = Function(
    "short_text", (2, 2), lambda _kinds, _facts: Type.TEXT, lambda _facts: Fact(), _short, "{0}", "a text",
    work=linear(1), length=lambda sizes: min(sizes[0].characters, int(sizes[1].number)), reads=None,
)  # fmt: skip


def limited(expr: Expr) -> Expr:
    """Return the expression with NULL for each text longer than its function reads."""
    if not isinstance(expr, Call):
        return expr
    args = []
    for place, arg in enumerate(expr.args):
        inner = limited(arg)
        if is_cut(expr, place):
            limit = Literal(reading_limit(expr.function, place), Type.INTEGER)
            inner = call_of(_SHORT, (inner, limit), Type.TEXT)
        args.append(inner)
    same = all(one is other for one, other in zip(args, expr.args, strict=True))
    return expr if same else call_of(expr.function, tuple(args), expr.type)


PIECE = 1_024
"""Cells per piece if intermediate texts are made, each of which can be long."""


def _makes_texts(expr: Expr) -> bool:
    return any(isinstance(part, Call) and part.type is Type.TEXT for part in walk(expr))


def _in_pieces(run: Evaluator) -> Evaluator:
    def whole(start: int, stop: int) -> Vector:
        pieces = [run(first, min(first + PIECE, stop)) for first in range(start, stop, PIECE)] or [run(start, stop)]
        return one_after_the_other(pieces)

    return whole


def _liftable(expr: Expr) -> list[Call]:
    """Return the outermost calls whose value depends only on the code of a single text column."""
    if not isinstance(expr, Call) or not any(each.type is Type.TEXT for each in columns(expr)):
        return []
    if text_column(expr) is not None:
        return [expr]
    return [part for arg in expr.args for part in _liftable(arg)]
