"""Kinds of expressions before names are resolved: enough to recognize integer division."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from sqlglot import exp

from dpsql.schema.columns import TableSchema, Type

KIND = "kind"
"""Metadata key under which a rewritten node keeps the original's kind."""
_DEEPEST = 64
"""Maximum number of aliases followed: no text refers so far through its own sub-queries, and cycles end."""


class Kind(Enum):
    """The known kind of an expression."""

    WHOLE = "a whole number"
    REAL = "a number"
    TEXT = "a text"
    DAY = "a date"
    MOMENT = "a timestamp"
    TRUTH = "a condition"


_OF_TYPE = {
    Type.INTEGER: Kind.WHOLE,
    Type.REAL: Kind.REAL,
    Type.TEXT: Kind.TEXT,
    Type.DATE: Kind.DAY,
    Type.TIMESTAMP: Kind.MOMENT,
    Type.BOOLEAN: Kind.TRUTH,
}
_WHOLE = (
    exp.Count, exp.CountIf, exp.ApproxDistinct, exp.Length, exp.StrPosition, exp.Extract, exp.Year, exp.Month, exp.Day,
    exp.Quarter, exp.DateDiff, exp.TimestampDiff, exp.DatetimeDiff, exp.IntDiv, exp.RowNumber, exp.Rank, exp.DenseRank,
    exp.Ntile, exp.DayOfWeek, exp.DayOfYear, exp.DayOfMonth, exp.Week, exp.WeekOfYear, exp.Hour, exp.Minute, exp.Second,
)  # fmt: skip
_REAL = (
    exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Sqrt, exp.Exp, exp.Ln,
    exp.Log, exp.Pow, exp.SafeDivide, exp.PercentileCont, exp.PercentRank, exp.CumeDist, exp.Corr,
)  # fmt: skip
_SAME = (
    exp.Sum, exp.Min, exp.Max, exp.Abs, exp.Neg, exp.Paren, exp.Window, exp.Filter, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.AnyValue, exp.Alias, exp.Distinct,
)  # fmt: skip
"""Functions of the same kind as their argument."""
_BOTH = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div)
_TRUTHS = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
_TEXTS = (
    exp.Upper,
    exp.Lower,
    exp.Concat,
    exp.Substring,
    exp.Trim,
    exp.TimeToStr,
    exp.ToChar,
    exp.SplitPart,
    exp.Left,
    exp.DPipe,
)
_NUMBERS = {Kind.WHOLE, Kind.REAL}


class Kinds:
    """The kinds of a text's expressions, from the columns of its tables and its aliases."""

    def __init__(self, tree: exp.Expr, tables: Iterable[TableSchema]) -> None:
        self._columns: dict[str, set[Kind | None]] = {}
        for table in tables:
            for column in table.columns:
                self._columns.setdefault(column.name.casefold(), set()).add(_OF_TYPE.get(column.type))
        self._aliases: dict[str, list[exp.Expr]] = {}
        for alias in tree.find_all(exp.Alias):
            self._aliases.setdefault(alias.alias.casefold(), []).append(alias.this)

    def of(self, node: object, deep: int = 0) -> Kind | None:
        """Return the kind of an expression, or None if unknown."""
        if deep > _DEEPEST or not isinstance(node, exp.Expr):
            return None
        if KIND in node.meta:
            return node.meta[KIND]  # type: ignore[no-any-return]
        if isinstance(node, exp.Column):
            return self._of_column(node.name.casefold(), deep)
        if isinstance(node, exp.Literal):
            return Kind.TEXT if node.is_string else Kind.WHOLE if node.is_int else Kind.REAL
        if isinstance(node, exp.Cast):
            return _of_cast(node)
        if isinstance(node, _WHOLE):
            return Kind.WHOLE
        if isinstance(node, _REAL):
            return Kind.REAL
        if isinstance(node, _TRUTHS):
            return Kind.TRUTH
        if isinstance(node, _TEXTS):
            return Kind.TEXT
        return self._of_parts(node, deep + 1)

    def _of_parts(self, node: exp.Expr, deep: int) -> Kind | None:
        if isinstance(node, _SAME):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) and node.expressions else node.this
            return self.of(inner, deep)
        if isinstance(node, exp.Round | exp.Ceil | exp.Floor | exp.Trunc):
            return Kind.WHOLE if self.of(node.this, deep) is Kind.WHOLE else Kind.REAL
        if isinstance(node, _BOTH):
            return _joined((self.of(node.this, deep), self.of(node.expression, deep)))
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least | exp.Nullif):
            parts = [node.this, *node.expressions, *([node.expression] if isinstance(node, exp.Nullif) else [])]
            return _joined(self.of(part, deep) for part in parts if not isinstance(part, exp.Null))
        if isinstance(node, exp.Case | exp.If):
            ways = node.args.get("ifs") or [node]
            ends = [*(each.args["true"] for each in ways), node.args.get("default") or node.args.get("false")]
            return _joined(self.of(end, deep) for end in ends if end is not None and not isinstance(end, exp.Null))
        return None

    def _of_column(self, name: str, deep: int) -> Kind | None:
        found = set(self._columns.get(name, ()))
        found |= {self.of(each, deep + 1) for each in self._aliases.get(name, ()) if not _is_itself(each, name)}
        return found.pop() if len(found) == 1 else _joined(found)


def _is_itself(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.casefold() == name


def _of_cast(node: exp.Cast) -> Kind | None:
    to = node.to
    if to.is_type(*exp.DataType.INTEGER_TYPES):
        return Kind.WHOLE
    if to.is_type(*exp.DataType.NUMERIC_TYPES):
        return Kind.REAL
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return Kind.TEXT
    if to.is_type(exp.DType.DATE):
        return Kind.DAY
    return Kind.MOMENT if to.is_type(*exp.DataType.TEMPORAL_TYPES) else None


def _joined(kinds: Iterable[Kind | None]) -> Kind | None:
    """Return the common kind: a real and integers make a real; other mixtures are unknown."""
    found = set(kinds)
    if found and found <= _NUMBERS:
        return Kind.WHOLE if found == {Kind.WHOLE} else Kind.REAL
    return found.pop() if len(found) == 1 else None
