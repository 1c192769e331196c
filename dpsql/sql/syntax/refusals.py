"""Messages for constructs refused by name: nodes, their arguments, and the keyword to point to."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.errors import UnknownGroups
from dpsql.plan.aggregates import MOST_POINTS, Aggregation
from dpsql.plan.domains import Domains
from dpsql.plan.expressions import Expr, Literal, call, columns
from dpsql.plan.facts import fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.query import MOST_DERIVED_CELLS
from dpsql.schema.columns import Type
from dpsql.sql.syntax.nodes import NamedArguments

_SAMPLE = (
    "no rows are sampled (TABLESAMPLE, SAMPLE): below an aggregate one person could decide who else is. LIMIT "
    "takes some rows of an answer, without chance."
)
_ADD_MONTHS = "ADD_MONTHS is not supported: it differs at the ends of months. Write d + INTERVAL 1 MONTH."
_UNIT_FIRST = (
    "{} is not supported with these arguments. Write {}('month', ...), with the unit in quotes; weeks begin on Monday."
)
_JOIN = "a join in parentheses, or a LATERAL one, is not supported. Write the tables one after the other."
_SET = "set operations ({}) are not supported."
_STATISTIC = "{} is not supported. COUNT_IF and AVG of a condition are."
CLOCK = (
    "{} is not supported: an answer must not change with the clock. Write :today in its place, and pass "
    'params={{"today": datetime.date.today()}}.'
)
_OWN_VALUE = "{} is not supported: it would be one person's own value. MODE, MEDIAN, MIN and MAX are chosen privately."
_ANY = f"{_OWN_VALUE} A public table's column stands in GROUP BY: GROUP BY code, name."
_OWN_VALUES = "{} is not supported: it would be people's own values. GROUP BY the column shows which ones occur."

_JSON = (
    'values inside JSON are not read. Write REGEXP_EXTRACT(x, \'"a": *"?([a-z0-9]*)\', 1), or store the value as a '
    "column."
)
_SPLIT = (
    "lists inside a text are not taken apart. Write ';' || x || ';' LIKE '%;SQL;%' for one value, and a CASE of such "
    "conditions for several."
)

RECURSIVE = (
    "recursive CTEs are not supported. A calendar is generate_series(DATE '2024-01-01', DATE '2024-12-31', "
    "INTERVAL 1 DAY) AS t(d)."
)
_SCALAR = (
    "a sub-query as a value stands in WHERE, GROUP BY or an aggregate's argument, of people's rows. Write a value that "
    "you know in its place."
)

CLOCKS = frozenset({"NOW", "GETDATE", "SYSDATE", "LOCALTIMESTAMP", "GET_CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP"})
"""Functions without a parser node that read the clock."""

NO_COLUMNS: Mapping[str, str] = {
    "ROWNUM": "Write LIMIT 10 at the end.",
    "SYSDATE": 'Write :today in its place, and pass params={"today": datetime.date.today()}.',
    "SYSTIMESTAMP": 'Write :now in its place, and pass params={"now": datetime.datetime.now()}.',
}
"""Other engines' words in place of columns, and what to write instead."""

NO_FUNCTIONS: Mapping[str, str] = {
    "MAD": "MAD is two questions: MEDIAN(x), then MEDIAN(ABS(x - :middle)) with its answer as the parameter.",
    "WINDOW": "WINDOW(t, ...) is not supported. Write TIME_BUCKET(INTERVAL '7 days', t), the time that it begins with.",
    "PRINTF": "PRINTF is not supported. Write CONCAT('n = ', x), or LPAD(CAST(x AS TEXT), 5, '0').",
    "PRODUCT": "PRODUCT is not supported: one row can change it without limit. EXP(SUM(LN(x))) is, of values above 0.",
    "LISTAGG": _OWN_VALUES.format("LISTAGG"),
    "ENTROPY": "ENTROPY is not supported. GROUP BY x gives the counts that it is made of.",
    "RAND": "RAND is not supported: an answer depends on the data and the noise alone.",
    "UUID": "UUID is not supported: an answer depends on the data and the noise alone.",
    "GEN_RANDOM_UUID": "GEN_RANDOM_UUID is not supported: an answer depends on the data and the noise alone.",
    "DATEADD": "DATEADD is not supported with these arguments. Write d + INTERVAL 30 DAY, or DATE_TRUNC('month', d).",
    "DATE_SUB": "DATE_SUB is not supported with these arguments. Write d - INTERVAL 30 DAY for an earlier day, or "
    "DATE_SUB('year', a, b) for the completed years between two.",
    **{
        name: _UNIT_FIRST.format(name, other)
        for name, other in {
            "DATE_TRUNC": "DATE_TRUNC",
            "TIMESTAMP_TRUNC": "DATE_TRUNC",
            "DATETIME_TRUNC": "DATE_TRUNC",
            "DATEDIFF": "DATE_DIFF",
            "DATE_DIFF": "DATE_DIFF",
            "DATEPART": "DATE_PART",
            "DATENAME": "DATE_PART",
        }.items()
    },
    "DATE_FORMAT": "DATE_FORMAT with these codes is not supported. Write STRFTIME(d, '%Y-%m').",
    "TO_DATE": "TO_DATE reads YYYY-MM-DD alone. Write CAST(... AS DATE).",
    "JULIANDAY": "JULIANDAY is not supported. Write DATE_DIFF('day', a, b): midnights between two times; b - a of two "
    "timestamps is in microseconds, of two dates in days.",
    "DECODE": "DECODE is not supported with these arguments. Write CASE x WHEN 1 THEN 'a' ELSE 'b' END.",
    "RATIO_TO_REPORT": "RATIO_TO_REPORT is not supported. Write x / SUM(x) OVER ().",
    "TOTAL": "TOTAL is not supported. Write SUM.",
    "COLLECT_LIST": _OWN_VALUES.format("COLLECT_LIST"),
    "COLLECT_SET": _OWN_VALUES.format("COLLECT_SET"),
}
"""Names without a parser node, and what to write instead."""

NAMED: Mapping[type[exp.Expr], str] = {
    exp.Lateral: _JOIN,
    exp.JSONExtract: _JSON,
    exp.JSONExtractScalar: _JSON,
    exp.JSONCast: _JSON,
    exp.Split: _SPLIT,
    exp.RegexpSplit: _SPLIT,
    exp.ArrayContains: _SPLIT,
    exp.Any: "ANY is not supported over rows. Write IN (...) for = ANY, or x > (SELECT MIN(y) FROM t) for x > ANY.",
    exp.All: "ALL is not supported over rows. Write NOT IN (...), or x > (SELECT MAX(y) FROM t) for x > ALL (...).",
    exp.TableSample: _SAMPLE,
    exp.Parameter: "parameters are written :name.",
    exp.RegexpILike: "write REGEXP_MATCHES(x, 'pattern', 'i') in place of this.",
    exp.RegexpSubstr: "REGEXP_SUBSTR is not supported. Write REGEXP_EXTRACT(x, 'pattern').",
    exp.Glob: "GLOB is not supported. Write LIKE.",
    exp.AddMonths: _ADD_MONTHS,
    exp.MonthsBetween: "MONTHS_BETWEEN is not supported. Write DATE_SUB('month', a, b), which counts completed months, "
    "or DATE_DIFF('month', a, b), which counts borders of months.",
    exp.Stack: "STACK is not supported. Write UNPIVOT t ON a, b INTO NAME k VALUE v, or an aggregate for each column.",
    exp.Date: "DATE is not supported with these arguments. Write CAST(x AS DATE), DATE_TRUNC('month', d), d + INTERVAL "
    "1 DAY; in the place of 'now' the parameter :today.",
    exp.Initcap: "INITCAP is not supported. Write UPPER(LEFT(x, 1)) || LOWER(SUBSTR(x, 2)), of one word.",
    exp.TimeSlice: "TIME_SLICE is not supported. Write TIME_BUCKET(INTERVAL '6 hours', t).",
    exp.TimestampDiff: "TIMESTAMP_DIFF is not supported. Write DATE_SUB('hour', a, b), which counts completed hours, "
    "or DATE_DIFF('hour', a, b), which counts borders of hours.",
    exp.Dot: "a point before a call is not supported; an outer join is written LEFT JOIN ... ON.",
    exp.RegexpCount: "REGEXP_COUNT is not supported. REGEXP_MATCHES(x, 'pattern') says whether there is a match.",
    exp.Overlaps: "OVERLAPS is not supported. Write a < d AND c < b.",
    exp.Collate: "COLLATE is not supported: text is compared by code point.",
    exp.Lock: "FOR UPDATE and the like are not supported.",
    exp.Rand: "RANDOM() is not supported: an answer depends on the data and the noise alone.",
    exp.CurrentDate: CLOCK.format("CURRENT_DATE"),
    exp.CurrentTimestamp: CLOCK.format("CURRENT_TIMESTAMP"),
    exp.CurrentTime: CLOCK.format("CURRENT_TIME"),
    exp.CurrentDatetime: CLOCK.format("CURRENT_DATETIME"),
    exp.Localtime: CLOCK.format("LOCALTIME"),
    exp.Localtimestamp: CLOCK.format("LOCALTIMESTAMP"),
    exp.UtcDate: CLOCK.format("UTC_DATE"),
    exp.UtcTime: CLOCK.format("UTC_TIME"),
    exp.UtcTimestamp: CLOCK.format("UTC_TIMESTAMP"),
    exp.Array: "lists ([...]) are not supported.",
    exp.Struct: "structures ({...}) are not supported.",
    exp.Bracket: "subscripts (x[...]) are not supported. SPLIT_PART(x, '-', 1) gives a part of a text, "
    "and SPLIT(x, '-')[0] of another dialect is read where dialect= names it.",
    exp.Lambda: "lambda functions are not supported.",
    exp.Intersect: _SET.format("INTERSECT"),
    exp.Except: _SET.format("EXCEPT"),
    exp.AnyValue: _ANY.format("ANY_VALUE"),
    exp.First: _ANY.format("FIRST"),
    exp.Last: _ANY.format("LAST"),
    exp.ArgMax: _OWN_VALUE.format("ARG_MAX"),
    exp.ArgMin: _OWN_VALUE.format("ARG_MIN"),
    exp.ArrayAgg: _OWN_VALUES.format("LIST"),
    exp.LogicalAnd: _STATISTIC.format("BOOL_AND"),
    exp.LogicalOr: _STATISTIC.format("BOOL_OR"),
    exp.GroupConcat: _OWN_VALUES.format("STRING_AGG"),
    exp.StrToTime: "STRPTIME is not supported. CAST(... AS TIMESTAMP) reads ISO dates.",
    exp.AtTimeZone: "AT TIME ZONE is not supported: timestamps have no zone here.",
    exp.IntervalSpan: "an INTERVAL is of one unit.",
    exp.PositionalColumn: "#1 is not supported. Name the column.",
    exp.Typeof: "TYPEOF is not supported.",
    exp.BitwiseAnd: "operations on bits are not supported.",
    exp.BitwiseOr: "operations on bits are not supported.",
    exp.BitwiseXor: "operations on bits are not supported.",
    exp.BitwiseNot: "operations on bits are not supported.",
}

INSIDE: Mapping[type[exp.Expr], str] = {
    exp.Star: "* stands in COUNT(*) and as an item of SELECT only.",
    exp.Subquery: _SCALAR,
    exp.Select: _SCALAR,
    exp.Exists: "EXISTS (SELECT ...) stands in questions about people's rows.",
    exp.Tuple: "rows of values (a, b) are not supported. Write the columns one by one: a = 1 AND b = 2, GROUP BY a, b.",
    exp.Window: "window functions (... OVER ...) stand in a sub-query of people's rows, or over an answer.",
    exp.IgnoreNulls: "IGNORE NULLS belongs to a window function.",
    exp.RespectNulls: "RESPECT NULLS belongs to a window function.",
    NamedArguments: "named arguments (name => value) belong to aggregates.",
    exp.Kwarg: "named arguments (name => value) belong to aggregates.",
    exp.Distinct: "DISTINCT inside an aggregate is not supported.",
}
"""Nodes supported elsewhere, found inside an expression."""

CLAUSES: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.Select, "laterals"): _JOIN,
    (exp.Select, "sample"): _SAMPLE,
    (exp.Select, "locks"): "FOR UPDATE and the like are not supported.",
    (exp.Select, "into"): "INTO is not supported: an answer is returned, not stored.",
    (exp.WindowSpec, "exclude"): "EXCLUDE is not supported in a frame.",
    (exp.Group, "rollup"): "WITH ROLLUP is not supported. Write GROUP BY ROLLUP (...).",
    (exp.Group, "cube"): "WITH CUBE is not supported. Write GROUP BY CUBE (...).",
    (exp.Distinct, "on"): "DISTINCT ON is not supported.",
    (exp.With, "recursive"): RECURSIVE,
    (exp.CTE, "materialized"): "MATERIALIZED is not supported: nothing private is stored.",
    (exp.CTE, "scalar"): "a CTE is a query in parentheses.",
    (exp.Table, "sample"): _SAMPLE,
    (exp.Table, "joins"): _JOIN,
    (exp.Subquery, "sample"): _SAMPLE,
    (exp.Subquery, "joins"): _JOIN,
    (exp.In, "field"): "IN wants a list of values in parentheses.",
    (exp.DataType, "kind"): "there is no type of that name.",
    (exp.DataType, "nested"): "lists and structures are no types here.",
    (exp.DataType, "values"): "types of listed values (ENUM) are not supported.",
    (exp.Table, "when"): "a table has no versions here (FOR SYSTEM_TIME, AT).",
    (exp.Table, "version"): "a table has no versions here (FOR SYSTEM_TIME, AT).",
    (exp.Select, "connect"): "CONNECT BY is not supported.",
    (exp.Select, "match"): "MATCH_RECOGNIZE is not supported.",
    (exp.Star, "except_"): "* EXCLUDE (...) is not supported. Name the columns.",
    (exp.Star, "replace"): "* REPLACE (...) is not supported. Name the columns.",
    (exp.Star, "rename"): "* RENAME (...) is not supported. Name the columns.",
    (exp.CountIf, "zero_on_all_null"): "COUNT_IF takes one condition.",
    (exp.Union, "distinct"): "UNION removes doubles, which is not supported here. Write UNION ALL.",
    (exp.Union, "order"): "ORDER BY after UNION is not supported. Order the answer.",
    (exp.Union, "limit"): "LIMIT after UNION is not stable: one person could decide whose rows are left.",
    (exp.Count, "expressions"): "COUNT takes one argument.",
    (exp.ArgMin, "count"): "ARG_MIN takes two arguments (x, y): of several rows it would be a list.",
    (exp.ArgMax, "count"): "ARG_MAX takes two arguments (x, y): of several rows it would be a list.",
    (exp.Min, "count"): "MIN takes one argument.",
    (exp.Max, "count"): "MAX takes one argument.",
    (exp.Mode, "deterministic"): "MODE takes one argument.",
    (exp.ApproxDistinct, "accuracy"): "APPROX_COUNT_DISTINCT takes one argument.",
    (exp.Corr, "null_on_zero_variance"): "CORR takes two arguments (y, x).",
    (exp.ApproxTopK, "counters"): "APPROX_TOP_K takes a value, and how many.",
    (exp.Order, "this"): "ORDER BY among arguments is not supported. WITHIN GROUP (ORDER BY ...) is, of quantiles.",
    (exp.Between, "symmetric"): "BETWEEN SYMMETRIC is not supported.",
    (exp.Column, "db"): "a column is named by one word, or by its table and its name.",
    (exp.Cast, "format"): "CAST ... FORMAT is not supported.",
    (exp.Limit, "limit_options"): "LIMIT takes one whole number.",
}

WORDS: Mapping[type[exp.Expr], str] = {
    exp.Window: "OVER",
    exp.AnyValue: "ANY_VALUE",
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
    exp.PositionalColumn: "#",
}


PLAIN_QUOTES = "Texts are written 'so', numbers in decimal digits."
LIKE_SEVERAL: Mapping[type[exp.Expr], str] = {
    exp.Any: "LIKE ANY is not supported. Write one LIKE for each pattern, with OR between them.",
    exp.All: "LIKE ALL is not supported. Write one LIKE for each pattern, with AND between them.",
}


# Refusals of selection whose candidates are private or too many.


def unlisted(each: Aggregation, expr: Expr, domains: Domains, *, public: bool) -> UnknownGroups:
    """Return the refusal of an aggregate of an expression; `public`: it has a declared list, which is too long."""
    private = next((column for column in columns(expr) if domains.of(column) is None), None)
    listed = "" if private is None else f'keys={{"{private.name}": [...]}}.'
    why, hint = "it has no public list of values", f"List them: {listed}" if listed else ""
    if public or domains.too_many(expr):
        why = f"it has too many public values: more than {MOST_POINTS if public else MOST_DERIVED_CELLS:,}"
        hint = f"Ask for fewer{_fewer(expr, domains)}" + (f", or list those that matter: {listed}" if listed else ".")
    return UnknownGroups(
        f"{each.word}({expr}) chooses one of the values that {expr} can have, and {why}.", span=each.span, hint=hint
    )


def _fewer(expr: Expr, domains: Domains) -> str:
    """Suggest rounding numbers to tens, hundreds or more until few enough remain."""
    values = fact(expr, domains.known).range
    if not expr.type.numeric or not values.bounded:
        return ""
    by = 10
    while values.upper - values.lower >= by * (MOST_DERIVED_CELLS - 1):
        by *= 10
    quotient = call(FUNCTIONS["divide"], expr, Literal(by, Type.INTEGER))
    return "" if quotient is None else f", for example of FLOOR({quotient})"


_TYPOGRAPHIC = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u00b4\u2032\u2033"


def quotes_hint(name: str) -> str:
    """Return what to write in place of a name in curly quotes, or "" for any other name."""
    bare = name.strip(_TYPOGRAPHIC)
    return "" if bare == name else f"These are typographic quotes. Write '{bare}' for a text, \"{bare}\" for a name."


def as_text(column: object) -> str:
    """Return the advice for a column whose type has no operations in dpsql."""
    return f'Store it as text: df["{column}"] = df["{column}"].astype(str).'
