"""The supported grammar: for each parser node, the arguments that a rule reads and the words it accounts for.

Everything else is refused (`check` in allow_list.py). Functions with one node have rules of their own (spellings.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.plan.functions import dates
from dpsql.schema.frozen import dataclass
from dpsql.sql.syntax.nodes import NamedArguments, PriorValue, PrivacyClause
from dpsql.sql.syntax.spellings import AGGREGATE_NODES, NODES


@dataclass(frozen=True, slots=True)
class Rule:
    """Arguments that are read (None: all), and words that the node may be written with, each once."""

    args: frozenset[str] | None
    words: tuple[str, ...] = ()


def _rule(args: str = "", words: str = "") -> Rule:
    spaced = tuple(
        word.replace("_", " ") if word in ("GROUP_BY", "ORDER_BY", "PARTITION_BY", "GROUPING_SETS") else word
        for word in words.split()
    )
    return Rule(frozenset(args.split()), spaced)


_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "% MOD",
    exp.Pow: "** ^",
    exp.Neg: "-",
    exp.Abs: "@",
    exp.EQ: "= ==",
    exp.NEQ: "<> !=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Not: "NOT NOTNULL",
    exp.DPipe: "||",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.StartsWith: "^@",
    exp.Substring: "FROM FOR",
    exp.StrPosition: "IN",
}
_SWITCHES: Mapping[type[exp.Expr], str] = {  # these are the default behaviour
    exp.Least: "ignore_nulls",
    exp.Greatest: "ignore_nulls",
    exp.Concat: "safe coalesce",
    exp.ConcatWs: "safe coalesce",
    exp.DPipe: "safe",
    exp.Initcap: "",
}

_OWN: dict[type[exp.Expr], Rule] = {
    exp.Select: _rule(
        "expressions from_ joins where group having qualify windows order limit offset distinct with_ privacy", "SELECT"
    ),
    exp.Qualify: _rule("this", "QUALIFY"),
    exp.Window: _rule("this partition_by order spec alias over", "OVER PARTITION_BY"),
    exp.WindowSpec: _rule("kind start start_side end end_side"),
    exp.IgnoreNulls: _rule("this", "IGNORE NULLS"),
    exp.RespectNulls: _rule("this", "RESPECT NULLS"),
    exp.RowNumber: _rule(),
    exp.Rank: _rule(),
    exp.DenseRank: _rule(),
    exp.PercentRank: _rule(),
    exp.CumeDist: _rule(),
    exp.Ntile: _rule("this"),
    exp.Lag: _rule("this offset default"),
    exp.Lead: _rule("this offset default"),
    exp.FirstValue: _rule("this"),
    exp.LastValue: _rule("this"),
    exp.From: _rule("this", "FROM"),
    exp.Table: _rule("this alias db catalog"),
    exp.TableAlias: _rule("this columns", "AS"),
    exp.Subquery: _rule("this alias"),
    exp.With: _rule("expressions", "WITH"),
    exp.CTE: _rule("this alias"),
    exp.Join: _rule(
        "this on using side kind method",
        "JOIN INNER LEFT RIGHT OUTER CROSS ON USING FULL NATURAL SEMI ANTI ASOF POSITIONAL",
    ),
    exp.Union: _rule("this expression by_name", "UNION ALL BY NAME"),
    exp.Exists: _rule("this", "EXISTS"),
    exp.Distinct: _rule("expressions", "DISTINCT"),  # expressions: of COUNT(DISTINCT x)
    exp.Identifier: _rule("this quoted"),
    exp.Column: _rule("this table", "."),
    exp.Alias: _rule("this alias", "AS"),
    exp.Where: _rule("this", "WHERE"),
    exp.Group: _rule("expressions all", "GROUP_BY"),
    exp.Rollup: _rule("expressions", "ROLLUP"),
    exp.Cube: _rule("expressions", "CUBE"),
    exp.GroupingSets: _rule("expressions", "GROUPING_SETS"),
    exp.Grouping: _rule("expressions"),
    exp.GroupingId: _rule("expressions"),
    exp.Having: _rule("this", "HAVING"),
    exp.Order: _rule("expressions", "ORDER_BY"),
    exp.Ordered: _rule("this desc nulls_first", "ASC DESC NULLS FIRST LAST"),
    exp.Limit: _rule("expression", "LIMIT"),
    exp.Offset: _rule("expression", "OFFSET ROW ROWS"),
    exp.Fetch: _rule("direction count limit_options", "FETCH FIRST NEXT"),
    exp.LimitOptions: _rule("rows", "ROW ROWS ONLY"),
    exp.WidthBucket: _rule("this min_value max_value num_buckets"),
    exp.RegrCount: _rule("this expression"),
    exp.AnyValue: _rule("this"),
    exp.ArgMin: _rule("this expression"),
    exp.ArgMax: _rule("this expression"),
    exp.First: _rule("this"),
    exp.Last: _rule("this"),
    exp.LogicalAnd: _rule("this"),
    exp.LogicalOr: _rule("this"),
    exp.Skewness: _rule("this"),
    exp.Kurtosis: _rule("this"),
    exp.ApproxQuantiles: _rule("this expression"),
    exp.Star: _rule("", "*"),
    exp.Literal: _rule("this is_string"),
    exp.Boolean: _rule("this", "TRUE FALSE"),
    exp.Null: _rule("", "NULL UNKNOWN"),
    exp.Placeholder: _rule("this", ": $"),
    exp.Paren: _rule("this"),
    exp.Tuple: _rule("expressions"),
    exp.And: _rule("this expression", "AND"),
    exp.Or: _rule("this expression", "OR"),
    exp.Is: _rule("this expression", "IS ISNULL NOTNULL"),
    exp.In: _rule("this expressions query unnest", "IN"),
    exp.Values: _rule("expressions alias", "VALUES"),
    exp.Unnest: _rule("expressions alias", "UNNEST"),
    exp.Explode: _rule("this"),
    exp.GenerateSeries: _rule("start end step is_end_exclusive"),
    exp.GenerateDateArray: _rule("start end step"),
    exp.Between: _rule("this low high", "BETWEEN AND"),
    exp.Like: _rule("this expression negate", "NOT LIKE ~~ !~~"),
    exp.ILike: _rule("this expression negate", "NOT ILIKE ~~* !~~*"),
    exp.RegexpLike: _rule("this expression flag", "~ ! RLIKE REGEXP"),
    exp.RegexpFullMatch: _rule("this expression options"),
    exp.SimilarTo: Rule(frozenset({"this", "expression"}), ("SIMILAR TO",)),
    exp.RegexpExtract: _rule("this expression parameters group null_if_pos_overflow"),
    exp.RegexpReplace: _rule("this expression replacement modifiers single_replace"),
    exp.Escape: _rule("this expression", "ESCAPE"),
    exp.Case: _rule("this ifs default", "CASE ELSE END"),
    exp.If: _rule("this true false", "WHEN THEN"),
    exp.Cast: _rule("this to", "AS ::"),
    exp.TryCast: _rule("this to safe", "AS"),
    exp.DataType: _rule("this expressions"),
    exp.DataTypeParam: _rule("this"),
    exp.Interval: _rule("this unit", "INTERVAL"),
    exp.Var: _rule("this"),
    exp.Extract: _rule("this expression", "FROM"),
    exp.TimestampTrunc: _rule("this unit"),
    exp.DateTrunc: _rule("this unit"),
    exp.DateDiff: _rule("this expression unit date_part_boundary"),
    exp.DateAdd: _rule("this expression"),
    exp.DateBin: _rule("this expression unit"),
    exp.TimeToStr: _rule("this format"),
    exp.ToChar: _rule("this format"),
    exp.Log: _rule("this expression"),
    exp.Trim: _rule("this expression position", "BOTH LEADING TRAILING FROM"),
    exp.Pad: _rule("this expression fill_pattern is_left"),
    exp.Anonymous: _rule("this expressions"),  # the binder refuses unknown names
    exp.Filter: _rule("this expression", "FILTER"),
    exp.WithinGroup: _rule("this expression", "WITHIN GROUP"),
    PrivacyClause: _rule("expressions", "WITH DIFFERENTIAL_PRIVACY OPTIONS"),
    NamedArguments: _rule("this expressions"),
    exp.Kwarg: _rule("this expression", "=>"),
}


_OWN.update({getattr(exp, name): _rule("this") for name in dates.NODES})


def _of_records() -> dict[type[exp.Expr], Rule]:
    rules = {}
    for node, spelling in NODES.items():
        listed = frozenset({spelling.rest}) if spelling.rest else frozenset()
        switches = frozenset(_SWITCHES.get(node, "").split())
        rules[node] = Rule(frozenset(spelling.args) | listed | switches, tuple(_OPERATORS.get(node, "").split()))
    for node, spellings in AGGREGATE_NODES.items():
        rules[node] = Rule(frozenset(spellings[0].args))
    return rules


RULES: Mapping[type[exp.Expr], Rule] = {**_of_records(), **_OWN}
LISTS: Mapping[type[exp.Expr], Rule] = {
    exp.Any: _rule("this", "ANY"),
    exp.Array: _rule("expressions value_constructor", "ARRAY [ ]"),
    exp.Bracket: _rule("this expressions", "[ ]"),
}
"""Lists of values and their parts: allowed only in x = ANY([...]), in UNNEST and as quantiles."""


def rule_of_part(kind: type[exp.Expr]) -> Rule | None:
    """Return the rule of a node in one SELECT of a multi-step statement, which may hold released values that stand in
    no text."""
    return Rule(frozenset({"this", "written"})) if kind is PriorValue else RULES.get(kind)
