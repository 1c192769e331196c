"""Nodes that mean the same in every dialect once sqlglot has parsed them."""

from __future__ import annotations

from sqlglot import exp

_STATEMENT = (
    exp.Select, exp.From, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered,
    exp.Offset, exp.Join, exp.Table, exp.TableAlias, exp.Subquery, exp.CTE, exp.With, exp.Union, exp.Intersect,
    exp.Except, exp.Distinct, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Tuple, exp.Exists, exp.Values,
    exp.Rollup, exp.Cube, exp.GroupingSets, exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.IgnoreNulls,
    exp.RespectNulls,
)  # fmt: skip
_VALUES = (
    exp.Literal, exp.RawString, exp.Boolean, exp.Null, exp.Paren, exp.Var, exp.Placeholder, exp.Parameter, exp.DataType,
    exp.DataTypeParam, exp.Interval, exp.WeekStart, exp.IntervalSpan,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Between, exp.In, exp.Is, exp.Escape, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe,
    exp.Case, exp.If, exp.ILike, exp.Xor, exp.All, exp.Any,
)  # fmt: skip
_AGGREGATES = (
    exp.Count, exp.CountIf, exp.ApproxDistinct, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.AnyValue, exp.Median, exp.Mode,
    exp.StddevPop, exp.StddevSamp, exp.VariancePop, exp.PercentileCont, exp.PercentileDisc,
    exp.ApproxQuantile, exp.Quantile, exp.LogicalOr, exp.LogicalAnd, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead,
    exp.FirstValue, exp.LastValue,
)  # fmt: skip
_FUNCTIONS = (
    exp.Coalesce, exp.Nullif, exp.Nvl2, exp.SafeDivide, exp.Abs, exp.Ceil, exp.Floor,
    exp.Trunc, exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Sign, exp.Upper, exp.Lower, exp.Trim, exp.Replace,
    exp.StartsWith, exp.EndsWith, exp.Contains, exp.Left, exp.Right, exp.Pad, exp.RegexpReplace, exp.DecodeCase,
)  # fmt: skip
_TIMES = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfYear, exp.Hour, exp.Minute, exp.Second,
    exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc, exp.DateAdd, exp.DateSub, exp.TimestampAdd, exp.TimestampSub,
    exp.DatetimeAdd, exp.DatetimeSub, exp.TsOrDsAdd, exp.AddMonths, exp.LastDay, exp.Date, exp.TsOrDsToDate,
    exp.TsOrDsToTimestamp, exp.TimeStrToTime, exp.TimeToStr, exp.DateStrToDate,
)  # fmt: skip
EVERYWHERE: frozenset[type[exp.Expr]] = frozenset(
    (*_STATEMENT, *_VALUES, *_OPERATORS, *_AGGREGATES, *_FUNCTIONS, *_TIMES)
)
"""Nodes without a rule of their own."""
