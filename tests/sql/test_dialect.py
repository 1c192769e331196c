"""The dialect: what it adds to DuckDB's is parsed, placed, written and parsed again alike; all else is as it was."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from dpsql.sql.syntax.dialect import PrivacyDialect, check_build
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause

DIALECT = PrivacyDialect()

CLAUSES = [
    "",
    "WITH DIFFERENTIAL_PRIVACY ",
    "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) ",
    "with differential_privacy options(Epsilon=.5,delta=1e-6) ",
    "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1, a = 'it''s', b = TRUE, c = NULL, d = pid, e = \"user id\") ",
    "WITH DIFFERENTIAL_PRIVACY OPTIONS (a = user, b = json, c = date, d = :p, e = 1 + 1, f = (1, 2), g = t.x) ",
    "WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 1, a = 2, group_selection_strategy = LAPLACE_THRESHOLD) DISTINCT ",
]
LISTS = [
    "COUNT(*)",
    ":p, COUNT(*) AS n",
    "COUNT(*, contribution_bounds_per_group => (0, 5)) AS n",
    "COUNT(x, contribution_bounds_per_group=>(-1.5, 1e3)) FILTER (WHERE y > :z)",
    "COUNT(DISTINCT x, epsilon => 0.5), SUM(DISTINCT x, epsilon => 1, report_format => JSON)",
    "education, AVG(age, contribution_bounds_per_group => (17, 90), epsilon => 0.5, report_format => 'JSON') AS a",
    "1 + 100 * SUM(x + y, contribution_bounds_per_row => (0, 10)) / COUNT(x, epsilon => :e) AS share",
    "MIN(x, epsilon => 1), MAX(DISTINCT x, epsilon => 1), QUANTILE(x, 0.5, epsilon => 1), MEDIAN(x, epsilon => 1)",
    "VAR_POP(x, a => 1), STDDEV(x, a => 1), CORR(x, y, a => 1), COVAR_POP(x, y, a => 1), MODE(x, a => 1)",
    "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 1))",
    "PERCENTILE_CONT(0.5, epsilon => 1) WITHIN GROUP (ORDER BY x)",
    "f(x, a => g(y, b => 1), c => 'd'), h(a => 1), @ f(x, a => 1), COUNT(*, a => 1) OVER (PARTITION BY x)",
    "ROUND(AVG(x, a => CASE WHEN TRUE THEN 1 END), 1) AS r",
    ":p::INT AS a, x::INT, -:p, (:p), :a + :b, NOT :p, f(:p), f(x, :p), ROUND(:p, :q)",
    "CAST(:p AS DATE), [:p], {'a': :p}, x[:p], (:p, :q), :p IS NULL, x > :p, DATE '2020-01-01' + :p",
    "CASE :p WHEN 1 THEN :q ELSE :r END, COALESCE(:p, 1), EXISTS(SELECT :p), x = (SELECT :p)",
]
SOURCES = [
    "",
    " FROM t",
    " FROM t WHERE x IN (:a, :b) AND y BETWEEN :lo AND :hi OR z LIKE :pat GROUP BY :g HAVING :h ORDER BY :o LIMIT :n",
    " FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) :p, COUNT(*, a => 1) AS n FROM t) AS q",
    " FROM (WITH b AS (SELECT WITH DIFFERENTIAL_PRIVACY :p) SELECT * FROM b) AS q",
]
WRAPPERS = [
    "{}",
    "WITH a AS ({}) SELECT n FROM a",
    "({}) UNION ALL SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*, a => 1) FROM u",
]


def texts() -> Iterator[str]:
    """Every clause with every list, each in some place; and every place."""
    places = [(wrapper, source) for wrapper in WRAPPERS for source in SOURCES]
    pairs = list(itertools.product(CLAUSES, LISTS))
    for number, (clause, items) in enumerate(pairs):
        wrapper, source = places[number % len(places)]
        yield wrapper.format(f"SELECT {clause}{items}{source}")


def parse(sql: str) -> exp.Expr:
    tree = DIALECT.parse(sql)[0]
    assert tree is not None
    return tree


def clause_of(sql: str) -> PrivacyClause:
    clause = parse(sql).args["privacy"]
    assert isinstance(clause, PrivacyClause)
    return clause


def first(sql: str) -> exp.Expr:
    """The first item of the SELECT list."""
    return parse(f"SELECT {sql}").expressions[0]


def place(sql: str, node: exp.Expr) -> str:
    """The part of the text that a node has as its place."""
    return sql[node.meta["start"] : node.meta["end"] + 1]


# Round trips


@pytest.mark.parametrize("sql", list(texts()))
def test_written_text_parses_to_an_equal_tree(sql: str):
    tree = parse(sql)
    assert parse(tree.sql(dialect=DIALECT)) == tree
    assert parse(tree.sql(dialect=DIALECT, pretty=True)) == tree
    quoted = tree.sql(dialect=DIALECT, identify=True)
    assert parse(quoted).sql(dialect=DIALECT) == quoted


def test_case_and_spaces_do_not_matter():
    texts = [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) AVG(x, epsilon => 2) FROM t",
        "select\twith\n differential_privacy Options(epsilon=1)avg(x,epsilon=>2)from t",
        "SELECT WITH -- a\nDIFFERENTIAL_PRIVACY /* b */ OPTIONS (epsilon /* c */ = 1)\nAVG(x, epsilon => 2) FROM t",
    ]
    trees = [parse(sql) for sql in texts]
    assert trees[1].sql(dialect=DIALECT) == trees[2].sql(dialect=DIALECT, comments=False)
    assert trees[0] == trees[2]


def test_what_is_written():
    sql = """select with differential_privacy options (epsilon=.5, privacy_unit_column="my id", x=user, s='a', n=-1)
             :p, avg(age, contribution_bounds_per_group=>(-1, 90), report_format => 'JSON') filter (where x) a from t"""
    assert parse(sql).sql(dialect=DIALECT) == (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS "
        "(epsilon = 0.5, privacy_unit_column = \"my id\", x = user, s = 'a', n = -1) "
        ":p, AVG(age, contribution_bounds_per_group => (-1, 90), report_format => 'JSON') FILTER(WHERE x) AS a FROM t"
    )
    assert parse("SELECT WITH DIFFERENTIAL_PRIVACY f(a => 1)").sql(dialect=DIALECT, pretty=True) == (
        "SELECT WITH DIFFERENTIAL_PRIVACY\n  F(a => 1)"
    )


def test_comments_stay_with_their_calls():
    written = parse("SELECT COUNT(x, k => 1) /* c */ + 1 FROM t").sql(dialect=DIALECT)
    assert written == "SELECT COUNT(x, k => 1) /* c */ + 1 FROM t"


def test_comments_inside_a_call_do_not_break_it():
    node = first("COUNT(x, k => 1)")
    node.this.add_comments(["c"])
    assert first(node.sql(dialect=DIALECT)) == node


def test_writing_leaves_the_tree_as_it_was():
    tree = parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*, a => 1) FROM t")
    before = tree.copy()
    DIALECT.generate(tree, copy=False)
    assert tree == before
    assert tree.args["privacy"].arg_key == "privacy"
    assert not tree.args.get("hint")


# The clause


def test_clause_is_an_argument_of_its_select():
    clause = clause_of("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6) DISTINCT a FROM t")
    assert [(each.this.name, each.expression) for each in clause.expressions] == [
        ("epsilon", exp.Literal.number("1")),
        ("delta", exp.Literal.number("1e-6")),
    ]
    assert clause.parent.args["distinct"]
    assert not clause_of("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t").expressions
    assert not clause_of("SELECT WITH DIFFERENTIAL_PRIVACY options, COUNT(*) FROM t").expressions  # a column
    assert clause_of("FROM t SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 1) COUNT(*)").expressions


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [
        ("1", exp.Literal, "1"),
        ("1e-1", exp.Literal, "1e-1"),
        ("'a b'", exp.Literal, "a b"),
        ("-1", exp.Neg, "1"),
        ("TRUE", exp.Boolean, ""),
        ("NULL", exp.Null, ""),
        ("pid", exp.Var, "pid"),
        ("user", exp.Var, "user"),
        ("current_date", exp.Var, "current_date"),
        ("JSON", exp.Var, "JSON"),
        ('"user id"', exp.Identifier, "user id"),
        ('"user"', exp.Identifier, "user"),
        (":p", exp.Placeholder, "p"),
        ("t.pid", exp.Column, "pid"),
        ("(1, -2)", exp.Tuple, ""),
        ("1 + 1", exp.Add, "1"),
    ],
)
def test_values_are_kept_as_written(value: str, kind: type[exp.Expr], name: str):
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = {value}, b = 1) f(a => {value}) FROM t"
    tree = parse(sql)
    for given in (tree.args["privacy"].expressions[0], tree.expressions[0].expressions[0]):
        assert type(given.expression) is kind
        assert kind in (exp.Boolean, exp.Null) or given.expression.name == name
        assert place(sql, given.expression) == value
        assert place(sql, given.this) == "a"


def test_each_select_has_its_own_clause():
    sql = """WITH a AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 1) one FROM t)
             SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 2) two
             FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 3) three FROM (SELECT none)) JOIN a ON TRUE
             WHERE x IN (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 4) four)"""
    found = {}
    for select in parse(sql).find_all(exp.Select):
        clause = select.args.get("privacy")
        found[select.expressions[0].name] = clause.expressions[0].expression.name if clause else None
    assert found == {"one": "1", "two": "2", "three": "3", "four": "4", "none": None}


def test_clause_has_the_place_of_its_words():
    sql = "SELECT\n  WITH\n  DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM t"
    assert place(sql, clause_of(sql)) == "WITH\n  DIFFERENTIAL_PRIVACY"


# Named arguments


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ("COUNT(*, a => 1)", "COUNT(*)"),
        ("COUNT(x, a => 1)", "COUNT(x)"),
        ("COUNT(DISTINCT x, a => 1)", "COUNT(DISTINCT x)"),
        ("COUNT(DISTINCT x, a => 1, b => 2)", "COUNT(DISTINCT x)"),
        ("COUNT(DISTINCT x, y, a => 1)", "COUNT(DISTINCT x, y)"),
        ("SUM(x, a => (0, 10))", "SUM(x)"),
        ("AVG(x + 1, a => 1)", "AVG(x + 1)"),
        ("MIN(x, a => 1)", "MIN(x)"),
        ("MAX(DISTINCT x, a => 1)", "MAX(DISTINCT x)"),
        ("COUNT_IF(x, a => 1)", "COUNT_IF(x)"),
        ("QUANTILE(x, 0.5, a => 1)", "QUANTILE(x, 0.5)"),
        ("PERCENTILE_CONT(x, 0.5, a => 1)", "PERCENTILE_CONT(x, 0.5)"),
        ("VARIANCE(x, a => 1)", "VARIANCE(x)"),
        ("STDDEV_POP(x, a => 1)", "STDDEV_POP(x)"),
        ("nobody_knows(x, a => 1)", "nobody_knows(x)"),
        ("nobody_knows(a => 1)", "nobody_knows()"),
    ],
)
def test_the_call_inside_is_a_plain_one(call: str, plain: str):
    node = first(call)
    assert isinstance(node, NamedArguments)
    assert node.this == DuckDB().parse(f"SELECT {plain}")[0].expressions[0]
    assert all(isinstance(each, exp.Kwarg) and isinstance(each.this, exp.Var) for each in node.expressions)
    assert node.expressions[0].this.name == "a"


def test_named_arguments_go_to_their_own_call():
    node = first("f(x, a => 1, b => g(y, c => 2)) FILTER (WHERE h(d => 3)) + k(*, e => 4)")
    names = {each.this.name: [kwarg.this.name for kwarg in each.expressions] for each in node.find_all(NamedArguments)}
    assert names == {"f": ["a", "b"], "g": ["c"], "h": ["d"], "k": ["e"]}
    assert isinstance(node.this, exp.Filter)
    assert isinstance(node.this.this, NamedArguments)


def test_a_named_call_stands_wherever_a_call_does():
    sql = "SELECT f(a => 1) AS x FROM t WHERE g(b => 1) GROUP BY f(a => 1) HAVING SUM(x, c => 1) > 1 ORDER BY h(d => 1)"
    assert len(list(parse(sql).find_all(NamedArguments))) == 5
    assert isinstance(first("SUM(x, a => 1) AS n").this, NamedArguments)
    assert isinstance(first("COUNT(*, a => 1) OVER ()").this, NamedArguments)


def test_a_named_call_has_the_place_of_its_name():
    sql = "SELECT COUNT(x, a => 1) FROM t"
    assert place(sql, parse(sql).expressions[0]) == "COUNT"


# Parameters


def test_parameters_have_their_names_and_places():
    sql = "SELECT :first, x FROM t WHERE x > :Second AND f(:third)::INT = : fourth LIMIT :user"
    found = list(parse(sql).find_all(exp.Placeholder))
    assert {each.this: place(sql, each) for each in found} == {
        "first": ":first",
        "Second": ":Second",
        "third": ":third",
        "fourth": ": fourth",
        "user": ":user",
    }


def test_a_name_after_a_dollar_is_a_parameter_too():
    assert first("$name") == first(":name")


@pytest.mark.parametrize("sql", ["$1", '$"a b"'])
def test_other_parameters_are_another_node(sql: str):
    assert isinstance(first(sql), exp.Parameter)
    assert parse(f"SELECT {sql}").sql(dialect=DIALECT) == f"SELECT {sql}"


def test_a_bare_question_mark_has_no_name():
    assert first("?") == exp.Placeholder()


# What is refused


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("SELECT WITH ‹x›, COUNT(*) FROM t", "only DIFFERENTIAL_PRIVACY can stand after SELECT WITH"),
        ("SELECT WITH ‹'DIFFERENTIAL_PRIVACY'› 1", "only DIFFERENTIAL_PRIVACY can stand after SELECT WITH"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (‹)› 1", "an option is written name = value"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 1,‹)› 1", "an option is written name = value"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (‹a› 1) 1", "an option is written name = value"),
        ('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (‹"a"› = 1) 1', "an option is written name = value"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (‹a› => 1) 1", "an option is written name = value"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = ‹)› 1", "a value is missing here"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = 1 ‹b› = 2) 1", "Expecting )"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (a = ‹1›", "Expecting )"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY ‹WITH› DIFFERENTIAL_PRIVACY 1", "Unexpected token"),
        ("SELECT DISTINCT ‹WITH› DIFFERENTIAL_PRIVACY 1", "Unexpected token"),
        ("UPDATE WITH DIFFERENTIAL_PRIVACY ‹t› SET x = 1", "Expecting ("),
        ("DELETE WITH DIFFERENTIAL_PRIVACY ‹FROM› t", "Expecting ("),
        ("INSERT WITH DIFFERENTIAL_PRIVACY ‹INTO› t SELECT 1", "Expecting ("),
        ("SELECT f(a => 1, ‹x›)", "after a named argument only named ones can follow"),
        ("SELECT SUM(a => 1, ‹x›)", "after a named argument only named ones can follow"),
        ("SELECT f(a => 1,‹)›", "after a named argument only named ones can follow"),
        ("SELECT COUNT(DISTINCT x, a => 1, ‹y›)", "after a named argument only named ones can follow"),
        ('SELECT f(‹"a"› => 1)', "a named argument is written name => value"),
        ("SELECT f(‹'a'› => 1)", "a named argument is written name => value"),
        ("SELECT f(‹1› => 2)", "a named argument is written name => value"),
        ("SELECT f(a => ‹)›", "a value is missing here"),
        ("SELECT f((a) ‹=>› 1)", "Expecting )"),
        ("SELECT COUNT(DISTINCT x, y + a ‹=>› 1)", "Expecting )"),
        ("SELECT COUNT(DISTINCT a ‹=>› 1)", "Expecting )"),
        ("SELECT MOD(x, y, ‹a› => 1)", "this function has no named arguments"),
        ("SELECT ANY_VALUE(x, ‹a› => 1)", "this function has no named arguments"),
        ("SELECT LENGTH(x, ‹a› => 1)", "this function has no named arguments"),
        ("SELECT a ‹=>› 1", "Unexpected token"),
        ("SELECT FLOOR(x, a ‹=>› 1)", "Unexpected token"),
        ("SELECT ‹n›: COUNT(*) FROM t", "an alias stands after what it names"),
        ('SELECT 1, ‹"n"›: COUNT(*) FROM t', "an alias stands after what it names"),
        ("SELECT * FROM ‹a›: t", "an alias stands after what it names"),
        ("SELECT * FROM (SELECT ‹n›: 1)", "an alias stands after what it names"),
        ("SELECT f(n‹:› 1)", "Expecting )"),
        ("SELECT * FROM t, ‹a›: u", "an alias stands after what it names"),
        ("SELECT date‹:› 1", "Unexpected token"),
        ("SELECT * FROM date‹:› t", "a parameter stands for a value"),
        ("SELECT COUNT(*) AS ‹:›n FROM t", "a parameter stands for a value"),
        ("SELECT COUNT(*) ‹:›n FROM t", "a parameter stands for a value"),
        ("SELECT date ‹:›n, :m FROM t", "a parameter stands for a value"),
        ("SELECT * FROM ‹:›t", "a parameter stands for a value"),
        ("SELECT * FROM a.‹:›t", "a parameter stands for a value"),
        ("SELECT * FROM ‹:›a.t", "a parameter stands for a value"),
        ("SELECT * FROM t AS ‹:›a", "a parameter stands for a value"),
        ("SELECT * FROM t AS a(‹:›b)", "a parameter stands for a value"),
        ("SELECT * FROM (SELECT :p AS a) AS ‹:›b", "a parameter stands for a value"),
        ("WITH ‹:›a AS (SELECT 1) SELECT 1", "a parameter stands for a value"),
        ("SELECT t.‹:›x FROM t", "a parameter stands for a value"),
        ("SELECT ‹:›f(x) FROM t", "a parameter stands for a value"),
        ("SELECT * FROM t JOIN u USING (‹:›k)", "a parameter stands for a value"),
        ("SELECT * EXCLUDE (‹:›a) FROM t", "a parameter stands for a value"),
        ("SELECT COUNT(*) OVER ‹:›w FROM t", "a parameter stands for a value"),
        ("SELECT EXTRACT(‹:›p FROM d) FROM t", "a parameter stands for a value"),
        ("SELECT DATE_TRUNC(‹:›p, :d) FROM t", "a parameter stands for a value"),
        ("SELECT {‹:›p: 1}", "a parameter stands for a value"),
        ("SELECT ‹:›1", "Unexpected token"),
        ('SELECT ‹:›"p"', "Unexpected token"),
        ("SELECT ‹:›select", "Unexpected token"),
    ],
)
def test_refused_at_the_marked_place(marked: str, words: str):
    before, at, after = re.split("[‹›]", marked)
    with pytest.raises(ParseError) as caught:
        DIALECT.parse(before + at + after)
    error = caught.value.errors[0]
    assert words in error["description"]
    assert (error["line"], error["col"], error["highlight"]) == (1, len(before + at), at)


# All else is DuckDB's

PLAIN = [
    "SELECT COUNT(*), SUM(x), AVG(DISTINCT x), MIN(x), MAX(x, 2), QUANTILE_CONT(x, 0.5), STRING_AGG(x, ',') FROM t",
    "SELECT a AS b, a b, t.a, \"a b\", 'it''s', 1e-6, .5, 1_000, TRUE, NULL, DATE '2020-01-01', INTERVAL 1 DAY FROM t",
    "SELECT x::INT, CAST(x AS DECIMAL(10, 2)), TRY_CAST(x AS DATE), x // 2, x % 2, x ** 2, @x, ~x, x || 'a', x ^@ 'a'",
    "SELECT x[a:b], x[:1], x[1:], x[:-1:2], {a: 1}, {'a': 1}, MAP {'a': 1}, [1, 2], struct_pack(a := 1), f(a := 2)",
    "SELECT list_transform(l, x -> x + 1), list_filter(l, LAMBDA x : x > 1), f(x -> x), f((x, y) -> x + y)",
    "SELECT CASE x WHEN 1 THEN 2 ELSE 3 END, CASE WHEN x THEN y END, IF(a, b, c), COALESCE(a, b), IFNULL(a, b)",
    "SELECT * EXCLUDE (a), * REPLACE (1 AS b), COLUMNS('a.*'), t.* FROM t",
    "SELECT DISTINCT ON (a) a, b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) = 1",
    "SELECT SUM(x) FILTER (WHERE y) OVER (ORDER BY z ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS ()",
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a), b AS MATERIALIZED (SELECT 2) SELECT * FROM a, b",
    "FROM t SELECT a WHERE x > 1",
    "FROM t",
    "SELECT * FROM t TABLESAMPLE 10% (system), u USING SAMPLE 5",
    "SELECT * FROM a LEFT JOIN b USING (k) ASOF JOIN c ON a.x >= c.x POSITIONAL JOIN d SEMI JOIN e ON TRUE",
    "SELECT * FROM read_csv('f', header => true, b => ['x']), READ_PARQUET('f', a => TRUE), range(10) AS r(i)",
    "SELECT UNNEST(x, max_depth => 2), UNNEST(x, recursive := true), my_macro(a, b => 1) FROM t",
    "SELECT a FROM t GROUP BY ALL HAVING COUNT(*) > 1 ORDER BY ALL LIMIT 10 OFFSET 5",
    "SELECT a FROM t GROUP BY ROLLUP (a, b), CUBE (c), GROUPING SETS ((d), ())",
    "(SELECT 1) UNION BY NAME (SELECT 2) EXCEPT SELECT 3 INTERSECT ALL SELECT 4",
    "SELECT x IS DISTINCT FROM y, x NOT IN (1, 2), x BETWEEN 1 AND 2, x LIKE 'a' ESCAPE 'b', x SIMILAR TO 'a'",
    "SELECT EXTRACT(YEAR FROM d), DATE_TRUNC('month', d), d + INTERVAL '1' DAY, STRFTIME(d, '%Y-%m'), CURRENT_DATE",
    "SELECT MOD(a, b), TRIM(BOTH 'x' FROM y), SUBSTRING(x, 1, 2), POSITION('a' IN x), FLOOR(x), ROUND(x, 2), LOG(2, x)",
    "SELECT QUANTILE_DISC(x, 0.5), ARRAY_AGG(x ORDER BY y), FIRST(x), ANY_VALUE(x), CORR(x, y), REGR_R2(x, y) FROM t",
    "SELECT VAR_SAMP(x), STDDEV(x), COVAR_POP(x, y), MODE(x), MEDIAN(DISTINCT x), APPROX_COUNT_DISTINCT(x) FROM t",
    "SELECT with_x, options, differential_privacy FROM options AS differential_privacy",
    "PIVOT t ON a USING SUM(b) GROUP BY c",
    "SELECT ?, $1",
    "INSERT INTO t SELECT * FROM u",
    "CREATE TABLE t AS SELECT 1 AS a",
    "SELECT /* a */ x -- b\n FROM t /* c */",
]


@pytest.mark.parametrize("sql", PLAIN)
def test_plain_sql_is_written_as_ever(sql: str):
    before, after = DuckDB().parse(sql)[0], parse(sql)
    for options in ({}, {"identify": True}, {"normalize": True, "comments": False}):
        assert after.sql(dialect=DIALECT, **options) == before.sql(dialect="duckdb", **options)
    if "=>" not in sql:  # the layout of long calls with them differs
        assert after.sql(dialect=DIALECT, pretty=True) == before.sql(dialect="duckdb", pretty=True)
    if "=>" not in sql and "$" not in sql:
        assert after == before


OWN = [
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC)",
    "PERCENTILE_DISC(0.25, epsilon => 1) WITHIN GROUP (ORDER BY x + y)",
    "PERCENTILE_CONT(:q) WITHIN GROUP (ORDER BY x) FILTER(WHERE y)",
    "MODE() WITHIN GROUP (ORDER BY x)",
    "MODE(epsilon => 1) WITHIN GROUP (ORDER BY x)",
    "QUANTILE_CONT(x, 0.5)",
    "QUANTILE_DISC(x, 0.5, epsilon => 1)",
    "CORR(x, y, epsilon => 1)",
    "REGR_SLOPE(x, y) FILTER(WHERE z)",
    "APPROX_TOP_K(x, 3)",
    "APPROX_TOP_K(x, 3, epsilon => 1)",
]


@pytest.mark.parametrize("call", OWN)
def test_what_duckdb_writes_otherwise_is_written_as_it_is_read(call: str, caplog: pytest.LogCaptureFixture):
    tree = parse(f"SELECT {call} FROM t")
    assert tree.sql(dialect=DIALECT) == f"SELECT {call} FROM t"
    assert parse(tree.sql(dialect=DIALECT, pretty=True)) == tree
    assert not caplog.records, "the parser's own warnings are about other dialects"


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("MEDIAN(x)", "MEDIAN"),
        ("MIN(x)", "MIN"),
        ("max(x, a => 1)", "max"),
        ("QUANTILE(x, 0.5)", "QUANTILE"),
        ("quantile_disc(DISTINCT x, 0.5)", "quantile_disc"),
        ("CORR(DISTINCT x, y)", "CORR"),
        ("REGR_R2(x, y, a => 1)", "REGR_R2"),
        ("APPROX_COUNT_DISTINCT(x)", "APPROX_COUNT_DISTINCT"),
    ],
)
def test_the_place_of_an_aggregate_is_that_of_its_name(call: str, word: str):
    sql = f"SELECT 1 + {call} FROM t"
    assert place(sql, parse(sql).expressions[0].expression) == word


def test_every_setting_is_duckdbs():
    def settings(kind: type) -> dict[str, object]:
        return {name: getattr(kind, name) for name in dir(kind) if name.isupper()}

    assert settings(PrivacyDialect) == settings(DuckDB)
    own = {
        "LAMBDAS",
        "FUNC_TOKENS",
        "FUNCTIONS",
        "FUNCTION_PARSERS",
        "NO_PAREN_FUNCTION_PARSERS",
        "PLACEHOLDER_PARSERS",
        "NAMED_PLACEHOLDER_TOKEN",
        "TRANSFORMS",
    }
    for ours, theirs in ((PrivacyDialect.Parser, DuckDB.Parser), (PrivacyDialect.Generator, DuckDB.Generator)):
        mine, base = settings(ours), settings(theirs)
        assert {name for name in mine.keys() | base.keys() if mine.get(name) != base.get(name)} <= own


def test_duckdbs_own_dialect_is_untouched():
    with pytest.raises(ParseError):
        DuckDB().parse("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t")
    assert DuckDB().parse("SELECT n: 1")[0].sql(dialect="duckdb") == "SELECT 1 AS n"
    assert PrivacyClause not in DuckDB.Generator.TRANSFORMS


def test_a_build_that_cannot_be_extended_is_named():
    class Closed(PrivacyDialect):
        def parser(self, **_options: object) -> object:
            raise TypeError("interpreted classes cannot inherit from compiled")

    with pytest.raises(ImportError, match="pip uninstall sqlglotc"):
        check_build(Closed())
