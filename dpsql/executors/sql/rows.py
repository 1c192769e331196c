"""Rows of a statement: a table expression and the contents of its columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from dpsql.executors.sql.dialect import Dialect, MissingFeature
from dpsql.plan.expressions import Call, Column, Expr, Literal
from dpsql.plan.text_lengths import is_cut, reading_limit
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number

Name = tuple[str, str]
"""A column of the plan: its table's name in the query, and its own name."""
MOST_NESTED = 24
"""Deeper nested calls become columns first."""
MOST_KEY_CHARACTERS = 1_000


@dataclass(frozen=True)
class Rows:
    """`text` follows FROM; columns: names in the statement; unit: the identity of each row's unit, NULL for none; None
    if the rows are public. unit_kind: its declared type, None if each row of a table is a unit."""

    text: str
    columns: Mapping[Name, str]
    unit: str | None = None
    unit_kind: Type | None = None
    values: Mapping[Expr, str] = field(default_factory=dict)
    """Expressions that are already columns."""
    bounded: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Integer columns that were clipped to these two bounds, whatever is stored."""
    raw: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For columns with declarations enforced: the stored column, and their text over it."""
    unread: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For text columns: the stored column, with any bytes, and their text over it."""
    clipped: Mapping[str, Interval] = field(default_factory=dict)
    """The clip bounds of those columns of `raw` that are only clipped; NULL stays NULL or becomes the default."""
    defaults: Mapping[str, Number] = field(default_factory=dict)
    """The defaults that replace NULL in these columns."""


class Names:
    """Unique names for a statement."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def fresh(self, letter: str = "x") -> str:
        return f"{letter}{next(self._numbers)}"


class Writer:
    """Writer of expressions over rows. Repeated subexpressions first become columns of a subquery, so that no text
    grows exponentially and nothing is computed twice."""

    def __init__(self, dialect: Dialect, names: Names) -> None:
        self.dialect = dialect
        self.names = names

    def text(self, expr: Expr, rows: Rows) -> str:
        """Return the text of an expression over rows that already have its repeated subexpressions (`with_values`)."""
        known = rows.values.get(expr)
        if known is not None:
            return known
        if isinstance(expr, Column):
            return rows.columns[expr.table, expr.name]
        if isinstance(expr, Literal):
            return self.dialect.literal(expr.value, expr.type)
        if not isinstance(expr, Call):
            raise MissingFeature(f"{type(expr).__name__} over rows")
        return self.dialect.call(expr, [self._argument(expr, place, rows) for place in range(len(expr.args))])

    def _argument(self, call: Call, place: int, rows: Rows) -> str:
        text = self.text(call.args[place], rows)
        if not is_cut(call, place):
            return text
        return f"CASE WHEN LENGTH({text}) <= {reading_limit(call.function, place)} THEN {text} END"

    def key_text(self, expr: Expr, rows: Rows) -> str:
        """Return a value to group by: reals with one zero; a long computed text is NULL."""
        text = self.text(expr, rows)
        if expr.type is Type.REAL:
            return f"({text} + 0.0e0)"
        if expr.type is Type.TEXT and isinstance(expr, Call):
            return f"CASE WHEN LENGTH({text}) <= {MOST_KEY_CHARACTERS} THEN {text} END"
        return text

    def with_values(self, rows: Rows, exprs: Iterable[Expr]) -> tuple[Rows, list[str]]:
        """Return the rows with a column for each expression, and the names of these columns."""
        wanted = list(exprs)
        for level in self._levels(wanted):
            rows = self.with_columns(rows, {expr: self.text(expr, rows) for expr in level if expr not in rows.values})
        calls = [expr for expr in dict.fromkeys(wanted) if not isinstance(expr, Column) and expr not in rows.values]
        rows = self.with_columns(rows, {expr: self.text(expr, rows) for expr in calls})
        return rows, [self.text(expr, rows) for expr in wanted]

    def ready(self, rows: Rows, exprs: Iterable[Expr]) -> Rows:
        """Return the rows with all columns that the texts of these expressions need."""
        for level in self._levels(list(exprs)):
            rows = self.with_columns(rows, {expr: self.text(expr, rows) for expr in level if expr not in rows.values})
        return rows

    def with_columns(self, rows: Rows, texts: Mapping[Expr, str]) -> Rows:
        """Return the rows with more columns, given as text."""
        if not texts:
            return rows
        named = {expr: self.names.fresh() for expr in texts}
        listed = ", ".join(f"{text} AS {named[expr]}" for expr, text in texts.items())
        return replace(rows, text=self.select(f"*, {listed}", rows.text), values={**rows.values, **named})

    def with_column(self, rows: Rows, text: str, letter: str) -> tuple[Rows, str]:
        """Return the rows with one more column, and its name, which begins with a letter."""
        name = self.names.fresh(letter)
        return replace(rows, text=self.select(f"*, {text} AS {name}", rows.text)), name

    def select(self, listed: str, source: str, rest: str = "") -> str:
        """Return a SELECT as text after FROM."""
        return f"(SELECT {listed} FROM {source}{rest}) AS {self.names.fresh('q')}"

    def _levels(self, exprs: list[Expr]) -> list[list[Expr]]:
        """Return the calls that must become columns first, by level, each over the previous one's."""
        sharing = _Sharing(self.dialect)
        for expr in exprs:
            sharing.visit(expr)
        levels: dict[Expr, int] = {}
        for expr in exprs:
            sharing.level(expr, levels)
        most = max((levels[expr] for expr in sharing.shared), default=0)
        return [[expr for expr in sharing.shared if levels[expr] == number] for number in range(1, most + 1)]


class _Sharing:
    """Finder of calls that occur repeatedly in a text, or too deep."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.shared: dict[Expr, None] = {}
        self._seen: dict[Expr, int] = {}

    def visit(self, expr: Expr) -> int:
        """Return the nesting depth of an expression's text."""
        if not isinstance(expr, Call):
            return 0
        if expr in self._seen:
            if not all(isinstance(arg, Literal) for arg in expr.args):
                self.shared[expr] = None
            return self._seen[expr]
        deepest = 0
        for place, (arg, times) in enumerate(zip(expr.args, self.dialect.mentions(expr), strict=True)):
            depth = self.visit(arg)
            if isinstance(arg, Call) and (times > 1 or depth >= MOST_NESTED or is_cut(expr, place)):
                self.shared[arg] = None
                depth = 0
            deepest = max(deepest, depth)
        self._seen[expr] = deepest + 1
        return deepest + 1

    def level(self, expr: Expr, levels: dict[Expr, int]) -> int:
        """Return the number of nested columns in an expression, including itself; kept in `levels`."""
        if not isinstance(expr, Call):
            return 0
        if expr not in levels:
            below = max((self.level(arg, levels) for arg in expr.args), default=0)
            levels[expr] = below + (expr in self.shared)
        return levels[expr]
