"""Words for what is refused by name: nodes, arguments of nodes, and the keyword to point at."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

_SAMPLE = "TABLESAMPLE below an aggregate is not stable: one person could decide who else is sampled."
_JOIN = "joins are not supported: a query reads one table."
_SET = "set operations ({}) are not supported."
_REGEX = "regular expressions are not supported. LIKE, STARTS_WITH and CONTAINS are."
_WINDOW = "window functions (... OVER ...) have no private version here."
_STATISTIC = "{} is not supported. COUNT, SUM and AVG are."
_CLOCK = "{} is not supported: an answer must not change with the clock. Write a DATE literal or a parameter."

NAMED: Mapping[type[exp.Expr], str] = {
    exp.Window: _WINDOW,
    exp.Join: _JOIN,
    exp.Lateral: _JOIN,
    exp.Exists: "sub-queries inside an expression (EXISTS) are not supported.",
    exp.Any: "ANY is not supported. Write IN (...).",
    exp.All: "ALL is not supported as a comparison. Write NOT IN (...) or AND.",
    exp.TableSample: _SAMPLE,
    exp.Parameter: "parameters are written :name.",
    exp.Rollup: "ROLLUP is not supported.",
    exp.Cube: "CUBE is not supported.",
    exp.GroupingSets: "GROUPING SETS are not supported.",
    exp.SimilarTo: _REGEX,
    exp.RegexpLike: _REGEX,
    exp.RegexpFullMatch: _REGEX,
    exp.RegexpExtract: _REGEX,
    exp.RegexpReplace: _REGEX,
    exp.Glob: "GLOB is not supported. Write LIKE.",
    exp.Collate: "COLLATE is not supported: text is compared by code point.",
    exp.Lock: "FOR UPDATE and the like are not supported.",
    exp.Unnest: "UNNEST is not supported.",
    exp.Explode: "UNNEST is not supported.",
    exp.Rand: "RANDOM() is not supported: an answer depends on the data and the noise alone.",
    exp.CurrentDate: _CLOCK.format("CURRENT_DATE"),
    exp.CurrentTimestamp: _CLOCK.format("CURRENT_TIMESTAMP"),
    exp.CurrentTime: _CLOCK.format("CURRENT_TIME"),
    exp.Array: "lists ([...]) are not supported.",
    exp.Struct: "structures ({...}) are not supported.",
    exp.Bracket: "subscripts (x[...]) are not supported.",
    exp.Lambda: "lambda functions are not supported.",
    exp.Union: _SET.format("UNION"),
    exp.Intersect: _SET.format("INTERSECT"),
    exp.Except: _SET.format("EXCEPT"),
    exp.Median: _STATISTIC.format("MEDIAN"),
    exp.Variance: _STATISTIC.format("VARIANCE"),
    exp.VariancePop: _STATISTIC.format("VAR_POP"),
    exp.Stddev: _STATISTIC.format("STDDEV"),
    exp.StddevPop: _STATISTIC.format("STDDEV_POP"),
    exp.StddevSamp: _STATISTIC.format("STDDEV_SAMP"),
    exp.Quantile: _STATISTIC.format("QUANTILE"),
    exp.Mode: _STATISTIC.format("MODE"),
    exp.Corr: _STATISTIC.format("CORR"),
    exp.BitwiseAnd: "operations on bits are not supported.",
    exp.BitwiseOr: "operations on bits are not supported.",
    exp.BitwiseXor: "operations on bits are not supported.",
    exp.BitwiseNot: "operations on bits are not supported.",
}

CLAUSES: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.Select, "joins"): _JOIN,
    (exp.Select, "laterals"): _JOIN,
    (exp.Select, "qualify"): "QUALIFY (window functions) has no private version here.",
    (exp.Select, "windows"): _WINDOW,
    (exp.Select, "sample"): _SAMPLE,
    (exp.Select, "locks"): "FOR UPDATE and the like are not supported.",
    (exp.Select, "into"): "INTO is not supported: an answer is returned, not stored.",
    (exp.Group, "all"): "GROUP BY ALL is not supported. Name the columns.",
    (exp.Group, "rollup"): "ROLLUP is not supported.",
    (exp.Group, "cube"): "CUBE is not supported.",
    (exp.Group, "grouping_sets"): "GROUPING SETS are not supported.",
    (exp.Distinct, "on"): "DISTINCT ON is not supported.",
    (exp.Distinct, "expressions"): "DISTINCT inside an aggregate is not supported.",
    (exp.With, "recursive"): "recursive CTEs are not supported.",
    (exp.CTE, "materialized"): "MATERIALIZED is not supported: nothing private is stored.",
    (exp.CTE, "scalar"): "a CTE is a query in parentheses.",
    (exp.Table, "db"): "a table is named by one word, without a database.",
    (exp.Table, "sample"): _SAMPLE,
    (exp.Table, "joins"): _JOIN,
    (exp.Subquery, "sample"): _SAMPLE,
    (exp.Subquery, "joins"): _JOIN,
    (exp.In, "query"): "sub-queries inside an expression (IN (SELECT ...)) are not supported.",
    (exp.Count, "expressions"): "COUNT takes one argument.",
    (exp.Between, "symmetric"): "BETWEEN SYMMETRIC is not supported.",
    (exp.Column, "db"): "a column is named by one word, or by its table and its name.",
    (exp.Cast, "format"): "CAST ... FORMAT is not supported.",
    (exp.Limit, "limit_options"): "LIMIT takes one whole number.",
}

WORDS: Mapping[type[exp.Expr], str] = {
    exp.Window: "OVER",
    exp.Distinct: "DISTINCT",
    exp.TableSample: "TABLESAMPLE",
    exp.Exists: "EXISTS",
    exp.Lock: "FOR",
    exp.Join: "JOIN",
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
    exp.CurrentDate: "CURRENT_DATE",
    exp.CurrentTimestamp: "CURRENT_TIMESTAMP",
    exp.CurrentTime: "CURRENT_TIME",
    exp.Rand: "RANDOM",
    exp.Array: "[",
    exp.Struct: "{",
    exp.SimilarTo: "SIMILAR",
}
