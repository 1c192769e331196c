"""The SQL reference in docs/sql says what the code does: every example runs, and every table is complete."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_float_dtype, is_integer_dtype, is_string_dtype
from sqlglot import exp

import dpsql
from dpsql.errors import DPSQLError, QueryRefused, UnsupportedSQL
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.plan.aggregates import AGGREGATES, MOST_POINTS
from dpsql.plan.expressions import Call, Expr, Function, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.dates import NODES as PART_NODES
from dpsql.plan.functions.dates import PARTS, UNITS
from dpsql.plan.options import AggregateOptions, Options
from dpsql.plan.query import MOST_DERIVED_CELLS, Query
from dpsql.session.tables.public_tables import public_data, resolved
from dpsql.sql.bind.aggregates import MOST_AGGREGATES, MOST_CHOSEN
from dpsql.sql.bind.keyword_expressions import RULES
from dpsql.sql.bind.released_select import shown_type
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parse import MOST_CHARACTERS, MOST_NESTING, MOST_TOKENS
from dpsql.sql.syntax.refusals import CLAUSES, NAMED
from dpsql.sql.syntax.spellings import AGGREGATE_NODES, NAMES, NODES
from tests.compiled import plan_of
from tests.test_units_page import shop

ROOT = Path(__file__).parent.parent.parent
PAGES = {
    name: (ROOT / "docs" / "sql" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("query", "aggregates", "joins", "functions", "post-processing", "limits")
}
MANUAL = "\n".join(PAGES.values())
ROWS = 300


def frame() -> pd.DataFrame:
    """The DataFrame that the manual's examples are about."""
    draw = np.random.default_rng(7)
    cities = pd.Series(draw.choice(["Rome", "Paris", "Oslo", "50% off"], ROWS), dtype="str")
    return pd.DataFrame(
        {
            "age": pd.Series(draw.integers(10, 95, ROWS), dtype="Int64").where(draw.random(ROWS) > 0.1),
            "hours": draw.integers(0, 90, ROWS),
            "income": np.where(draw.random(ROWS) > 0.1, draw.uniform(-10, 250_000, ROWS), np.nan),
            "sex": pd.Series(draw.choice(["Female", "Male"], ROWS), dtype="str"),
            "city": cities.where(draw.random(ROWS) > 0.1),
            "married": draw.random(ROWS) > 0.5,
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(draw.integers(0, 20_000, ROWS), unit="D"),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 31_536_000, ROWS), unit="s"),
        }
    )


def blocks(info: str) -> list[str]:
    """The examples between lines of ```, by what stands after the first."""
    return re.findall(rf"^```{info}\n(.*?)^```$", MANUAL, flags=re.DOTALL | re.MULTILINE)


def declared() -> dict[str, dpsql.Table]:
    """The tables as the manual's first lines of Python declare them."""
    names: dict[str, Any] = {"dpsql": dpsql, "df": frame(), **shop()}
    for block in blocks("python")[:2]:
        exec(compile(block, "docs/sql", "exec"), names)
    tables = names["tables"]
    assert isinstance(tables, dict)
    return tables


TABLES = declared()
STORES = {name: ColumnStore(each.frame, resolved(TABLES)[name]) for name, each in TABLES.items()}
CATALOG = Catalog(resolved(TABLES), public=public_data(STORES))


def ask(sql: str, epsilon: float = 1) -> Any:
    return dpsql.query(TABLES, sql, epsilon=epsilon)


def as_duckdb(sql: str) -> list[tuple[Any, ...]]:
    """The rows that DuckDB gives, in order."""
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table.frame)
    return connection.execute(sql).fetchall()


LARGE = 1e6
"""With this epsilon an answer is all but exact."""


def assert_is_duckdbs(sql: str) -> None:
    """Without noise to speak of, the answer is DuckDB's."""
    expected = as_duckdb(sql)
    assert expected[0][0] > 0, "an example that finds something says more"
    unlimited = sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1000)", 1)
    assert [*ask(unlimited, LARGE)] == [pytest.approx(row, rel=1e-4) for row in expected], sql


def bound(sql: str) -> Query:
    return plan_of(sql, CATALOG)[0].query


# Tables


@dataclass(frozen=True)
class Row:
    """One row of a table: its heading, and its cells by the names of the columns."""

    heading: str
    cells: dict[str, str]

    def codes(self, column: str) -> list[str]:
        """What stands between backticks in a cell."""
        return [each.replace("\\|", "|") for each in re.findall(r"`([^`]+)`", self.cells[column])]

    def __str__(self) -> str:
        return f"{self.heading}: {next(iter(self.cells.values()))}"


def rows_of(text: str) -> Iterator[Row]:
    heading, titles = "", None
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            titles = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if titles is None:
            titles = cells
        elif not set(line) <= set("|-"):
            assert len(cells) == len(titles), f"the table has other columns: {line}"
            yield Row(heading, dict(zip(titles, cells, strict=True)))


ROWS_OF_TABLES = list(rows_of(MANUAL))


def under(column: str) -> list[Row]:
    """The rows of all tables with a column of that name."""
    found = [row for row in ROWS_OF_TABLES if column in row.cells]
    assert found
    return found


def ids(rows: Iterable[Row]) -> list[str]:
    return [str(row) for row in rows]


# Examples


@pytest.mark.parametrize("sql", blocks("sql"))
def test_example_runs(sql: str):
    result = ask(sql)
    if isinstance(result, dpsql.Result):
        assert len(result.df.columns)
        assert "nan" not in str(list(result.df.columns))
    else:
        assert sql.startswith("EXPLAIN PRIVACY")


@pytest.mark.parametrize("block", blocks("sql refused"))
def test_refused_example_is_refused_in_these_words(block: str):
    sql, said = block.rstrip().rsplit("\n-- ", 1)
    with pytest.raises(DPSQLError) as caught:
        ask(sql)
    assert f"{type(caught.value).__name__}: {str(caught.value).splitlines()[0]}" == said


def test_python_runs():
    names: dict[str, Any] = {"dpsql": dpsql, "df": frame(), **shop()}
    for block in blocks("python"):
        exec(compile(block, "docs/sql", "exec"), names)


def test_every_block_is_run():
    infos = re.findall(r"^```(.+)$", MANUAL, flags=re.MULTILINE)
    assert set(infos) == {"python", "sql", "sql refused"}
    assert MANUAL.count("```") == 2 * len(infos)


# Functions


def of_rows(expression: str) -> Expr:
    """An expression over people's rows, bound."""
    argument = bound(f"SELECT COUNT({expression}) FROM people").plan.aggregations[0].argument
    assert argument is not None, expression
    return argument


def functions_in(expr: Expr) -> set[str]:
    return {part.function.name for part in walk(expr) if isinstance(part, Call)}


def outermost(expr: Expr) -> str:
    assert isinstance(expr, Call)
    return expr.function.name


FUNCTION_ROWS = [row for row in under("Function") if row.cells["Example"]]
PART_ROWS = under("Part")
CAST_ROWS = under("From")
SOURCES = {"number": ("age", "income"), "boolean": ("married",), "text": ("city",), "time": ("born", "seen")}


NOT_WRITTEN = {"of_steps"}
"""Functions that no text can name: a window over reals makes them (`test_windows`)."""
NOT_AFTER_INTERVAL = ("y", "w", "d", "h", "m", "s", "ms", "us")


def examples() -> Iterator[Expr]:
    """Every example of a function that the manual has, families written out."""
    for row in FUNCTION_ROWS:
        yield from map(of_rows, row.codes("Example"))
    for row in PART_ROWS:
        yield from (of_rows(text) for text, _ in of_part(row))
    for row in CAST_ROWS:
        for word in row.codes("Words"):
            for source in row.cells["From"].split(", "):
                yield from (of_rows(f"CAST({column} AS {word})") for column in SOURCES[source])


def of_part(row: Row) -> Iterator[tuple[str, str]]:
    """What can be written with a part or unit, and the type that it has."""
    part = row.codes("Part")[0]
    kind = "real" if part == "epoch" else "integer"
    for word in row.codes("Words"):
        yield f"EXTRACT({word} FROM born)", kind
        yield f"DATE_PART('{word}', seen)", kind
        if row.cells["Unit"] == "yes":
            yield f"DATE_TRUNC('{word}', seen)", "timestamp"
            yield f"DATE_DIFF('{word}', born, seen)", "integer"
            if word not in NOT_AFTER_INTERVAL:
                yield f"born + INTERVAL (age) {word}", "timestamp"
    for name in row.codes("Own functions"):
        yield f"{name}(born)", kind
        yield f"{name}(seen)", kind


def missing(functions: Iterable[str]) -> set[str]:
    """The functions that no row of the manual has an example of."""
    # PI() is folded as it is read.
    constants = {name.lower() for row in FUNCTION_ROWS for name in row.codes("Function")}
    found = {name for name in constants if name in FUNCTIONS and FUNCTIONS[name].arity == (0, 0)}
    return set(functions).difference(found, NOT_WRITTEN, *map(functions_in, examples()))


def test_every_function_has_a_row():
    assert not missing(FUNCTIONS), "a function was added without a row in docs/sql"


def test_a_function_without_a_row_is_seen():
    assert missing([*FUNCTIONS, "soundex"]) == {"soundex"}


@pytest.mark.parametrize("row", FUNCTION_ROWS, ids=ids(FUNCTION_ROWS))
def test_function_runs_and_has_this_type(row: Row):
    for example in row.codes("Example"):
        assert of_rows(example).type == row.cells["Result"], example
        assert len(ask(f"SELECT COUNT({example}) AS n FROM people").df) == 1


@pytest.mark.parametrize("row", FUNCTION_ROWS, ids=ids(FUNCTION_ROWS))
def test_function_has_all_these_names(row: Row):
    """Each name stands in an example, or means the same as one that does."""
    written = row.codes("Example")
    names = row.codes("Function")
    for name in names:
        words = name.split(" ")
        if any(all(_has(example, word) for word in words) for example in written):
            continue
        pairs = [(example, other) for example in written for other in names if example.startswith(f"{other}(")]
        assert any(of_rows(e.replace(f"{other}(", f"{name}(", 1)) == of_rows(e) for e, other in pairs), name


def _has(example: str, word: str) -> bool:
    if not word.isalpha() and not word.isidentifier():
        return word in example
    return re.search(rf"\b{word}\b", example) is not None


def written_as(function: Function) -> str:
    """The operator or the name that a function is shown with."""
    if not isinstance(function.show, str):
        return function.name.upper()
    return re.sub(r"\{\w+\}|\(.*", "", function.show).split(" INTERVAL")[0].strip()


def test_every_name_of_a_function_is_listed():
    listed = {name for row in FUNCTION_ROWS for name in row.codes("Function")}
    listed |= {name for row in PART_ROWS for name in row.codes("Own functions")}
    known = {name for node in NODES if issubclass(node, exp.Func) for name in node.sql_names()}
    operators = {exp.And, exp.Or, exp.Not, exp.Pow, exp.Mod}
    assert (known | set(NAMES)) - listed <= {each.__name__.upper() for each in operators}
    written = [each for name, each in FUNCTIONS.items() if name not in NOT_WRITTEN]
    assert {sign for each in written if (sign := written_as(each)) != "CAST"} <= listed
    worded = {
        exp.Case: "CASE", exp.If: "IF", exp.Extract: "EXTRACT", exp.TimestampTrunc: "DATE_TRUNC",
        exp.DateTrunc: "DATE_TRUNC", exp.DateDiff: "DATE_DIFF", exp.DateAdd: "DATE_ADD", exp.Interval: "INTERVAL",
        exp.Like: "LIKE", exp.ILike: "ILIKE", exp.Trim: "TRIM", exp.Pad: "LPAD", exp.Log: "LOG", exp.Add: "+",
        exp.Sub: "-", exp.Anonymous: "DATE_PART", exp.Between: "BETWEEN", exp.In: "IN", exp.Is: "IS NULL",
        exp.RegexpLike: "REGEXP_MATCHES", exp.SimilarTo: "SIMILAR TO", exp.RegexpFullMatch: "REGEXP_FULL_MATCH",
        exp.RegexpExtract: "REGEXP_EXTRACT", exp.RegexpReplace: "REGEXP_REPLACE",
        exp.TimeToStr: "STRFTIME", exp.ToChar: "TO_CHAR", exp.DateBin: "TIME_BUCKET",
    }  # fmt: skip
    assert set(worded.values()) <= listed
    elsewhere = {exp.Cast, exp.TryCast, exp.Boolean, exp.Null, exp.Placeholder, exp.Escape}
    parts = {getattr(exp, name) for name in PART_NODES}
    assert set(RULES) == set(worded) | elsewhere | parts, "a way of writing was added: give it a row in docs/sql"


def test_parts_and_units_are_all_there():
    assert {word.upper(): row.codes("Part")[0] for row in PART_ROWS for word in row.codes("Words")} == PARTS
    units = [row for row in PART_ROWS if row.cells["Unit"] == "yes"]
    assert {word.upper(): row.codes("Part")[0] for row in units for word in row.codes("Words")} == UNITS


@pytest.mark.parametrize("row", PART_ROWS, ids=ids(PART_ROWS))
def test_part_has_these_words_and_types(row: Row):
    part = row.codes("Part")[0]
    for text, kind in of_part(row):
        expr = of_rows(text)
        assert expr.type == kind, text
        assert outermost(expr).removesuffix("_of_date").endswith(f"_{part}"), text
    word = row.codes("Words")[-1]
    if word in NOT_AFTER_INTERVAL:
        with pytest.raises(QueryRefused):
            of_rows(f"born + INTERVAL (age) {word}")
    if row.cells["Unit"] == "no":
        with pytest.raises(QueryRefused):
            of_rows(f"DATE_TRUNC('{word}', seen)")
    assert len(ask(f"SELECT COUNT(EXTRACT({word} FROM seen)) AS n FROM people").df) == 1


@pytest.mark.parametrize("row", CAST_ROWS, ids=ids(CAST_ROWS))
def test_cast_takes_these_types_and_no_others(row: Row):
    taken = row.cells["From"].split(", ")
    for word in row.codes("Words"):
        for source, columns in SOURCES.items():
            for column in columns:
                casts = [f"CAST({column} AS {word})", f"TRY_CAST({column} AS {word})", f"{column}::{word}"]
                if source in taken:
                    assert {str(of_rows(cast).type) for cast in casts} == {row.cells["Result"]}, casts[0]
                    assert len(ask(f"SELECT COUNT({casts[0]}) AS n FROM people").df) == 1
                else:
                    with pytest.raises(QueryRefused):
                        of_rows(casts[0])


# Aggregates

AGGREGATE_ROWS = under("Aggregate")
OUTER_ROWS = under("Aggregate over an answer")
INNER_ROWS = under("Aggregate per person")


ALSO_CALLED = {"QUANTILE_CONT", "QUANTILE_DISC"}
OF_AN_ORDER = {
    *("ARG_MIN", "ARG_MAX", "MIN_BY", "MAX_BY", "FIRST", "LAST", "MODE", "BOOL_OR", "BOOL_AND", "MEDIAN"),
    *("QUANTILE", *ALSO_CALLED, "PERCENTILE_CONT", "PERCENTILE_DISC"),
}
"""What is computed exactly of one person's rows alone."""
ASKED = {"integer": "x > 1", "real": "x > 1", "boolean": "x", "date": "x > DATE '2000-01-01'", "text": "x > 'a'"}
"""Names that the parser reads as PERCENTILE_CONT and PERCENTILE_DISC."""


def test_every_aggregate_has_a_row():
    def listed(rows: list[Row], column: str) -> set[str]:
        return {name for row in rows for name in row.codes(column)}

    exact = {
        name
        for node, spellings in AGGREGATE_NODES.items()
        if any(each.aggregate.of_cells is not None for each in spellings)
        for name in node.sql_names()
    }
    assert listed(AGGREGATE_ROWS, "Aggregate") == ALSO_CALLED.union(*(node.sql_names() for node in AGGREGATE_NODES))
    assert listed(OUTER_ROWS, "Aggregate over an answer") == exact
    assert listed(INNER_ROWS, "Aggregate per person") == exact | OF_AN_ORDER
    statistics = {each.name for each in AGGREGATES.values() if each.second_moments}
    assert listed(under("NULL where"), "Statistic") == statistics


@pytest.mark.parametrize("row", AGGREGATE_ROWS, ids=ids(AGGREGATE_ROWS))
def test_aggregate_runs_and_has_this_type(row: Row):
    for example in row.codes("Example"):
        for name in row.codes("Aggregate"):
            text = re.sub(r"^\w+", name, example)
            query = bound(f"SELECT {text} FROM people")
            assert shown_type(query, query.finish.outputs[0].expr) == row.cells["Result"], text
            column = ask(f"SELECT {text} AS x FROM people").df["x"]
            kinds = {"integer": is_integer_dtype, "real": is_float_dtype, "text": is_string_dtype}
            assert kinds[row.cells["Result"]](column), text


@pytest.mark.parametrize("row", OUTER_ROWS, ids=ids(OUTER_ROWS))
def test_aggregate_over_an_answer_runs_and_has_this_type(row: Row):
    for example in row.codes("Example"):
        sql = f"SELECT {example} AS x FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age)"
        assert bound(sql).stages[0].finish.outputs[0].expr.type == row.cells["Result"], example
        assert len(ask(sql).df) == 1
    by_hand = ask("SELECT * FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age)").df
    assert len(by_hand) == 90 - 17 + 2, "bounds 17 to 90, and NULL"


@pytest.mark.parametrize("row", INNER_ROWS, ids=ids(INNER_ROWS))
def test_aggregate_per_person_runs_and_has_this_type(row: Row):
    assert {re.split(r"\W", example)[0] for example in row.codes("Example")} <= {*row.codes("Aggregate per person")}
    for example in row.codes("Example"):
        inner = f"SELECT customer, {example} AS x FROM orders GROUP BY customer"
        (column,) = bound(f"SELECT COUNT(x) FROM ({inner})").plan.input.columns[1:]
        assert column.type == row.cells["Result"], example
        assert_is_duckdbs(f"SELECT COUNT(*) AS n FROM ({inner}) WHERE {ASKED[str(column.type)]}")


def test_parts_of_epsilon_are_as_they_say():
    (sql,) = re.findall(r"`(SELECT COUNT\(\*\), MEDIAN.*?)` has three parts", " ".join(MANUAL.split()))
    release = ask(f"{sql} FROM people", epsilon=3).explanation._release
    assert [float(share.epsilon) for share in release.shares] == [1]
    assert [float(draw.epsilon) for draw in release.draws] == [1, 1]
    assert [len(draw.places) for draw in release.draws] == [2, 1]


def test_min_is_of_the_rank_that_is_said():
    (draw,) = ask("SELECT MIN(age) FROM people").explanation._release.draws
    assert draw.rank == 15
    (draw,) = ask("SELECT MIN(age) FROM people", epsilon=30).explanation._release.draws
    assert draw.rank == 1


def test_bounds_cost_what_is_said():
    guests = {"guests": dpsql.Table(frame(), bounds="auto")}
    for sql, searched in (("AVG(income), SUM(hours)", 2), ("AVG(income)", 1), ("SUM(CLAMP(income, 0, 9))", 0)):
        release = dpsql.query(guests, f"SELECT {sql} FROM guests", epsilon=1).explanation._release
        assert len(release.bounds) == searched
        assert float(release.cost.epsilon) == 1
        assert float(sum(share.epsilon for share in release.shares)) == pytest.approx(0.7 if searched else 1)


def test_errors_that_are_asked_for_are_met():
    result = ask(examples_of("An error instead of an epsilon")[0])
    intervals = result.intervals(0.9)
    assert 0 < result.loss.epsilon < 1
    assert (intervals["n_high"] - result.df["n"]).between(19, 20).all()


# Several tables

FROM_ROWS = [*under("Join"), *under("Sub-query")]


@pytest.mark.parametrize("row", FROM_ROWS, ids=ids(FROM_ROWS))
def test_join_or_sub_query_runs_and_is_duckdbs(row: Row):
    for example in row.codes("Example"):
        assert_is_duckdbs(f"SELECT COUNT(*) AS n FROM {example}")


MULTIPLIED = [
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people CROSS JOIN countries",
    "SELECT COUNT(*) FROM people JOIN labels ON hours = product",
    "SELECT COUNT(*) FROM people JOIN products ON hours = products.id",
]


def test_noise_grows_with_the_rows_that_a_join_makes_of_a_person():
    sensitivity = [ask(sql).explanation.to_dict()["releases"][0]["sensitivity"]["l1"] for sql in MULTIPLIED]
    assert sensitivity == [1, 4, 2, 1]


def examples_of(heading: str) -> list[str]:
    """The queries under a heading."""
    return re.findall(
        r"^```sql\n(.*?)^```$", MANUAL.split(f"# {heading}\n")[1].split("\n#")[0], flags=re.DOTALL | re.MULTILINE
    )


def test_two_kinds_of_avg_are_as_they_say():
    of_orders, of_customers, in_plain_sql = (ask(sql, LARGE).item() for sql in examples_of("Two kinds of AVG"))
    orders = shop()["orders"]
    assert of_orders == pytest.approx(orders["total"].mean(), rel=1e-4)
    assert of_customers == pytest.approx(orders.groupby("customer")["total"].mean().mean(), rel=1e-4)
    assert in_plain_sql == pytest.approx(of_customers, rel=1e-4)
    assert abs(of_orders - of_customers) > 1


def test_public_tables_alone_are_exact_and_free():
    (sql,) = examples_of("Public tables")
    result = ask(sql)
    assert result.loss.epsilon == 0
    products = shop()["products"].groupby("kind")["price"].agg(["size", "mean"]).reset_index()
    assert [row[:2] for row in result] == [(row.kind, row.size) for row in products.itertuples()]
    assert result.df["price"].to_numpy() == pytest.approx(products["mean"].to_numpy(), rel=1e-8)


def test_counts_of_people_have_less_noise_than_those_of_their_rows():
    def width(sql: str) -> float:
        return float(ask(sql).explanation.to_dict()["columns"][-1]["interval_95"])

    people = width("SELECT state, COUNT(DISTINCT customer) FROM orders GROUP BY state")
    assert people < width("SELECT state, COUNT(*) FROM orders GROUP BY state") / 10


# Options

OPTION_ROWS = under("Option")
ARGUMENT_ROWS = under("Argument")


def names_of(kind: type[Options] | type[AggregateOptions]) -> set[str]:
    return {each.name for each in fields(kind)} - {"places"}


def test_options_are_all_there():
    assert [name for row in OPTION_ROWS for name in row.codes("Option")] == [
        each.name for each in fields(Options) if each.name != "places"
    ]
    assert {name for row in ARGUMENT_ROWS for name in row.codes("Argument")} == names_of(AggregateOptions)


@pytest.mark.parametrize("row", OPTION_ROWS, ids=ids(OPTION_ROWS))
def test_option_does_what_it_says(row: Row):
    name, written = row.codes("Option")[0], row.codes("Example")[0]
    more = "" if name == "delta" else "delta = 1e-6, "
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({more}{written}) city, COUNT(*) FROM customers GROUP BY city"
    assert len(ask(sql).df) <= 3


def explained(options: str, columns: str = "COUNT(*)", table: str = "customers", key: str = "city") -> dict[str, Any]:
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) {key}, {columns} FROM {table} GROUP BY {key}"
    found = ask(f"EXPLAIN PRIVACY {sql}").to_dict()
    assert isinstance(found, dict)
    return found


def test_limits_of_the_text_come_before_those_of_the_table():
    assert explained("delta = 1e-6", table="orders", key="placed")["limits"] == {
        "rows": 20, "groups": 20, "rows_per_group": 20
    }  # fmt: skip
    assert explained("max_rows_contributed = 50", table="orders", key="state")["limits"]["rows"] == 50
    both = explained("max_rows_contributed = 5, max_groups_contributed = 2", table="orders", key="state")["limits"]
    assert both == {"rows": 5, "groups": 2, "rows_per_group": 5}
    joined = ask("SELECT COUNT(*) FROM items JOIN orders ON order_id = orders.id").explanation.to_dict()["limits"]
    assert joined["rows"] == 60


def test_groups_are_selected_as_the_table_says():
    def strategy(options: str, columns: str = "COUNT(*)", **where: str) -> str:
        found = explained(f"delta = 1e-6{options}", columns, **where)["groups"]["strategy"]
        assert isinstance(found, str)
        return found

    assert strategy("") == "LAPLACE_THRESHOLD"
    assert strategy("", "0 AS nothing") == "TRUNCATED_GEOMETRIC"
    assert strategy("", table="orders", key="state") == "PUBLIC_GROUPS"
    for word in ("LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"):
        assert strategy(f", group_selection_strategy = {word}") == word
        assert strategy(f", group_selection_strategy = {word}", table="orders", key="state") == word


def test_a_least_number_of_people_is_kept():
    chosen = "delta = 1e-6, group_selection_strategy = TRUNCATED_GEOMETRIC"
    plain, raised = (explained(f"{chosen}{more}")["groups"] for more in ("", ", min_privacy_units_per_group = 20"))
    assert plain["shown"][10] > raised["shown"][10] == 0
    plain, raised = (explained(f"delta = 1e-6{more}")["groups"] for more in ("", ", min_privacy_units_per_group = 20"))
    assert raised["threshold"] == pytest.approx(plain["threshold"] + 19, rel=0.1)


def test_what_choosing_groups_costs():
    def scale(options: str) -> float:
        found = explained(f"delta = 1e-6{options}")["releases"][0]["scale"]
        assert isinstance(found, float)
        return found

    chosen = ", group_selection_strategy = TRUNCATED_GEOMETRIC"
    assert scale("") == pytest.approx(1)
    assert scale(chosen) == pytest.approx(2), "half for the choice, half for the count"
    assert scale(f"{chosen}, group_selection_epsilon = 0.2") == pytest.approx(1 / 0.8)


REFUSED_OPTIONS = {
    "epsilon": ["epsilon = 2", "epsilon = 0"],
    "delta": ["delta = 1"],
    "privacy_unit_column": ["privacy_unit_column = age, delta = 1e-6", "privacy_unit_column = nobody, delta = 1e-6"],
    "max_groups_contributed": ["max_groups_contributed = 0, delta = 1e-6", "max_groups_contributed = 1000000001"],
    "max_rows_contributed": ["max_rows_contributed = 0, delta = 1e-6", "max_rows_contributed = 1000000001"],
    "group_selection_strategy": [
        "group_selection_strategy = PUBLIC_GROUPS, delta = 1e-6",
        "group_selection_strategy = LAPLACE_THRESHOLD",
        "group_selection_strategy = GAUSSIAN_THRESHOLD",
        "group_selection_strategy = TRUNCATED_GEOMETRIC",
    ],
    "min_privacy_units_per_group": ["min_privacy_units_per_group = 0, delta = 1e-6"],
    "group_selection_epsilon": ["group_selection_epsilon = 1, delta = 1e-6"],
}


@pytest.mark.parametrize("row", OPTION_ROWS, ids=ids(OPTION_ROWS))
def test_option_is_refused_where_it_says_so(row: Row):
    for written in REFUSED_OPTIONS[row.codes("Option")[0]]:
        with pytest.raises(DPSQLError):
            ask(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({written}) city, COUNT(*) FROM customers GROUP BY city")


def test_a_column_of_a_table_without_a_unit_is_none():
    with pytest.raises(UnsupportedSQL, match="no unit is declared"):
        ask("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = age) COUNT(*) FROM people")


def test_options_of_groups_are_refused_where_all_are_public_or_there_are_none():
    for option in ("min_privacy_units_per_group = 5", "group_selection_epsilon = 0.5"):
        with pytest.raises(UnsupportedSQL, match=option.split(" ")[0]):
            ask(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) sex FROM people GROUP BY sex")
        with pytest.raises(UnsupportedSQL, match=option.split(" ")[0]):
            ask(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) COUNT(*) FROM people")
    for strategy in ("LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"):
        options = f"group_selection_strategy = {strategy}, delta = 1e-6"
        ask(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) COUNT(*) FROM people")  # it changes nothing


@pytest.mark.parametrize("row", ARGUMENT_ROWS, ids=ids(ARGUMENT_ROWS))
def test_named_argument_runs(row: Row):
    for call, table in (("SUM(hours, {})", "people"), ("SUM(total, {})", "orders"), ("AVG(total, {})", "orders")):
        sql = f"SELECT {call.format(row.codes('Example')[0])} AS x, COUNT(*) AS n FROM {table}"
        for clause in ("", "WITH DIFFERENTIAL_PRIVACY "):
            value = ask(sql.replace("SELECT ", f"SELECT {clause}")).df["x"].iloc[0]
            assert isinstance(value, str) == (row.codes("Argument") == ["report_format"])


def test_contribution_bounds_per_group_are_of_what_a_person_comes_to():
    bounds = "contribution_bounds_per_group => (100, 300)"
    of_each = shop()["orders"].groupby("customer")["total"].agg(["size", "sum", "mean"])
    assert ask(f"SELECT SUM(total, {bounds}) FROM orders", LARGE).item() == pytest.approx(
        of_each["sum"].clip(100, 300).sum(), rel=1e-3
    )
    assert ask(f"SELECT AVG(total, {bounds}) FROM orders", LARGE).item() == pytest.approx(
        of_each["mean"].clip(100, 300).mean(), rel=1e-3
    )
    counted = ask("SELECT COUNT(*, contribution_bounds_per_group => (0, 3)) FROM orders", LARGE).item()
    assert counted == of_each["size"].clip(0, 3).sum()
    fractions = ask("SELECT COUNT(*, contribution_bounds_per_group => (0, 2.5)) FROM orders", LARGE).item()
    assert fractions == of_each["size"].clip(0, 3).sum(), "a number of rows is held between whole numbers"
    wider = "contribution_bounds_per_group => (0, 450)"
    both = ask(f"SELECT AVG(total, {bounds}) AS a, AVG(total, {wider}) AS b FROM orders", LARGE).df.iloc[0]
    assert both["a"] == pytest.approx(of_each["mean"].clip(100, 300).mean(), rel=1e-3)
    assert both["b"] == pytest.approx(of_each["mean"].clip(0, 450).mean(), rel=1e-3)


@pytest.mark.parametrize("call", ["COUNT(*, {})", "SUM(code, {})", "AVG(code, {})"])
def test_what_a_person_adds_has_no_bounds_in_a_public_table(call: str):
    table = dpsql.Table(pd.DataFrame({"code": [1, 2, 3]}), public=True)
    with pytest.raises(DPSQLError, match="is about nobody"):
        dpsql.query(table, f"SELECT {call.format('contribution_bounds_per_group => (0, 2)')} FROM t", epsilon=1)


@pytest.mark.parametrize(
    "call",
    [
        "COUNT(*, contribution_bounds_per_row => (0, 1))",
        "COUNT(*, contribution_bounds_per_group => (2, 3))",
        "COUNT(DISTINCT age, contribution_bounds_per_group => (0, 1))",
        "COUNT_IF(DISTINCT married)",
        "SUM(married, contribution_bounds_per_row => (0, 1))",
        "SUM(married, contribution_bounds_per_group => (0, 1))",
        "SUM(age, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => (0, 1))",
        "SUM(age, epsilon => 2)",
        "SUM(age, epsilon => 1), COUNT(*)",
        "SUM(age, report_format => 'PROTO')",
    ],
)
def test_named_argument_is_refused(call: str):
    with pytest.raises(DPSQLError):
        ask(f"SELECT {call} FROM people")


@pytest.mark.parametrize("bounds", ["per_row", "per_group"])
def test_counts_of_people_have_no_bounds(bounds: str):
    with pytest.raises(UnsupportedSQL, match="a value counts once"):
        ask(f"SELECT COUNT(DISTINCT customer, contribution_bounds_{bounds} => (0, 1)) FROM orders")


def test_own_epsilons_alone_are_what_is_charged():
    session = dpsql.Session(TABLES, budget=dpsql.Budget(epsilon=1))
    session.query("SELECT COUNT(*, epsilon => 0.25) FROM people", epsilon=1)
    assert session.spent.epsilon == 0.25


# Differences and refusals

DIFFERENCES = under("DuckDB")


def shown(value: Any) -> str:
    """A cell as the manual writes it."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "NULL"
    if isinstance(value, float | np.floating):
        return "NULL" if math.isnan(value) else str(float(value))
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def in_duckdb(expression: str) -> str:
    try:
        row = duckdb.connect().execute(f"SELECT {expression}").fetchone()
    except duckdb.Error:
        return "error"
    assert row is not None
    return shown(row[0])


def here(expression: str) -> str:
    try:
        return shown(ask(f"SELECT {expression} AS x FROM (SELECT COUNT(*) AS n FROM people)").df["x"].iloc[0])
    except QueryRefused:
        return "error"


@pytest.mark.parametrize("row", DIFFERENCES, ids=ids(DIFFERENCES))
def test_difference_is_as_it_says(row: Row):
    expression = row.codes("Expression")[0]
    assert here(expression) == row.cells["Here"]
    assert in_duckdb(expression) == row.cells["DuckDB"]


REFUSED_ROWS = under("For example")


def refused_with(example: str) -> str:
    """What a refusal says; an item of a SELECT list becomes a query."""
    sql = example if re.match(r"(SELECT|WITH|DELETE)\b", example) else f"SELECT {example} FROM people"
    with pytest.raises(QueryRefused) as caught:
        ask(sql)
    return caught.value.message


@pytest.mark.parametrize("row", REFUSED_ROWS, ids=ids(REFUSED_ROWS))
def test_refused(row: Row):
    for example in row.codes("For example"):
        assert refused_with(example), example


NEVER_SAID = {
    exp.AnyValue: "ANY_VALUE",
    (exp.CTE, "scalar"): "WITH 1 AS r",
    (exp.DataType, "values"): "ENUM",
    (exp.Select, "match"): "MATCH_RECOGNIZE",
}
"""Refusals that the parser or another rule comes before, and the words in the table that stand for them."""


def test_every_refusal_by_name_has_an_example():
    written = [example for row in REFUSED_ROWS for example in row.codes("For example")]
    said = {refused_with(example) for example in written}
    for key, message in {**NAMED, **CLAUSES}.items():
        if key in NEVER_SAID:
            assert any(NEVER_SAID[key] in example for example in written)
        else:
            assert message in said, f"no example in docs/sql is refused with: {message}"


def test_limits_are_those_of_the_code():
    from dpsql.core.sensitivity.contribution_bounds import MOST_FAN_OUT
    from dpsql.executors.pandas.joins.pairing import MOST_PAIRS
    from dpsql.plan.domains import MOST_UNDECLARED
    from dpsql.plan.functions.text import MOST_CHARACTERS as LONGEST_TEXT
    from dpsql.schema.columns import MOST_KEYS
    from dpsql.schema.numbers import LARGEST_LIMIT
    from dpsql.sql.bind.grouping_sets import MOST_SETS
    from dpsql.sql.bind.scalars import MOST_DEPTH, MOST_SIZE
    from dpsql.sql.bind.statement import MOST_SUBQUERIES, MOST_TABLES

    limits = PAGES["limits"].split("## Limits")[1]
    for number in (MOST_CHARACTERS, MOST_TOKENS, MOST_SIZE, MOST_NESTING, MOST_SUBQUERIES, MOST_DEPTH, MOST_AGGREGATES):
        assert f"{number:,}" in limits
    for number in (MOST_POINTS, MOST_CHOSEN):
        assert f"{number:,}" in PAGES["aggregates"]
    assert f"among at most {MOST_POINTS:,}" in " ".join(limits.split())
    assert f"APPROX_TOP_K gives at most {MOST_CHOSEN}" in " ".join(limits.split())
    assert f"{MOST_SETS} grouping sets" in " ".join(limits.split())
    assert f"{MOST_TABLES} tables in one FROM" in " ".join(limits.split())
    assert f"more than {MOST_PAIRS:,} pairs" in " ".join(limits.split())
    assert f"up to {MOST_TABLES} tables" in PAGES["joins"]
    for text in (limits, PAGES["joins"]):
        assert f"at most {MOST_FAN_OUT:,}" in text
    assert LARGEST_LIMIT == 10**9
    assert all("above 10^9" in row.cells["Refused"] for row in OPTION_ROWS if "contributed" in str(row.cells["Option"]))
    groups = PAGES["query"].split("## GROUP BY")[1].split("\n## ")[0]
    for number in (MOST_DERIVED_CELLS, MOST_KEYS, MOST_UNDECLARED):
        assert f"{number:,}" in groups
    assert f"{LONGEST_TEXT:,}" in PAGES["functions"].split("## Texts")[1].split("\n## ")[0]
