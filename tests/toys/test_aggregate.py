"""A new aggregate is one record, in a file of dpsql/plan/aggregates/: here two toy ones, asked for in queries.

REGR_AVGX(y, x), the average of x over the rows where neither is NULL, is of the family of pairs: it follows from noisy
sums. BIT_OR(c) of a condition, whether it is true of any row, is of the family of ranks: the largest value, chosen by
its rank among people's rows and found where rows are exact.
"""

from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pandas as pd
import pytest

import dpsql
from dpsql.errors import MissingBounds, TypeMismatch, UnsupportedSQL
from dpsql.plan.aggregates import AGGREGATES
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.schema.columns import Type
from dpsql.session import prepare
from dpsql.sql.syntax import grammar, spellings
from dpsql.sql.syntax import parser as dialect_parser
from dpsql.testing import insecure_draws
from tests.test_architecture import ROOT, modules

AVGX = AggregateFunction(
    "REGR_AVGX",
    "average of x",
    ("RegrAvgx(this, expression)",),
    moments="nstp",
    estimate=lambda sums: (sums.other_centre + sums.other_half * sums.t / sums.n, sums.count >= 1),
    without_interval="it is a toy",
)
ANY = AggregateFunction(
    "BIT_OR",
    "any",
    ("BitwiseOrAgg(this)",),
    lambda kind: kind,
    lambda kind: kind is Type.BOOLEAN,
    lambda kind: kind is Type.BOOLEAN,
    chosen_by="rank",
    end="largest",
    without_interval="it is chosen",
    of_cells=lambda cells, _kind: any(cells),
)


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The records' lines in AGGREGATES of their files. All else follows from them: how they are written is read from
    them here as it is when the package is loaded."""
    for record in (AVGX, ANY):
        monkeypatch.setitem(AGGREGATES, record.name, record)
    for node, each in spellings._read_aggregates().items():
        monkeypatch.setitem(spellings.AGGREGATE_NODES, node, each)  # type: ignore[arg-type]
    for node, rule in grammar._of_records().items():
        monkeypatch.setitem(grammar.RULES, node, grammar._OWN.get(node, rule))  # type: ignore[arg-type]
    monkeypatch.setattr(dialect_parser, "_CALLED", dialect_parser._CALLED | spellings.AGGREGATE_NODES.keys())
    prepare._cache.clear()
    yield
    prepare._cache.clear()


FRAME = pd.DataFrame({
    "y": [1.0, None, 3.0, 4.0] * 50, "x": [2.0, 9.0, None, 8.0] * 50, "g": ["a", "b"] * 100, "p": [*range(50)] * 4,
})  # fmt: skip
SQL = "SELECT REGR_AVGX(y, x) AS v FROM t"


def session() -> dpsql.Session:
    table = dpsql.Table(FRAME, bounds={"x": (0, 10), "y": (0, 5)}, keys={"g": ["a", "b"]}, unit="p", max_rows=4)
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e6))


QUERIES = [
    (SQL, [5.0]),
    ("SELECT COUNT(*) AS n, REGR_AVGX(y, x) AS v FROM t", [5.0]),
    ("SELECT REGR_AVGX(y, x) AS v, REGR_SLOPE(y, x) AS b, VAR_POP(x) AS w FROM t", [5.0]),
    ("SELECT g, REGR_AVGX(y, x) AS v FROM t GROUP BY g ORDER BY g", [2.0, 8.0]),
    ("SELECT REGR_AVGX(y, x) AS v FROM t WHERE x > 5", [8.0]),
    ("SELECT REGR_AVGX(y, x, epsilon => 1000) AS v, COUNT(*) AS n FROM t", [5.0]),
    ("SELECT BIT_OR(x > 5) AS v FROM t", [True]),
    ("SELECT g, BIT_OR(x > 2) AS v, COUNT(*) AS n FROM t GROUP BY g ORDER BY g", [False, True]),
    ("SELECT BIT_OR(n > 100) AS v FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)", [False]),
    ("SELECT COUNT(*) AS v FROM (SELECT p, BIT_OR(x > 8) AS v FROM t GROUP BY p) WHERE v", [25]),
]


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(("sql", "expected"), QUERIES)
def test_a_query_uses_it_from_text_to_answer(sql: str, expected: list[float]):
    assert session().query(sql, epsilon=1e5).df["v"].tolist() == pytest.approx(expected, abs=0.01)


@pytest.mark.usefixtures("records")
def test_it_has_noise():
    assert insecure_draws(session(), SQL, 20, epsilon=1)["v"].nunique() > 1
    assert insecure_draws(session(), "SELECT BIT_OR(x > 5) AS v FROM t", 40, epsilon=0.01)["v"].nunique() == 2


@pytest.mark.usefixtures("records")
def test_it_is_explained_refused_and_given_again_as_others_are():
    held = session()
    explained = held.explain(SQL, epsilon=1)
    assert "REGR_AVGX from these" in str(explained)
    assert explained.to_dict()["epsilon"] == 1
    first, second = (held.query(SQL, epsilon=1) for _ in range(2))
    assert first.df.equals(second.df)
    assert held.spent.epsilon == 1
    for sql, error, words in (
        ("SELECT REGR_AVGX(y, g) FROM t", TypeMismatch, 'REGR_AVGX\\(g\\): "g" is text'),
        ("SELECT REGR_AVGX(y, x) AS v, DP_INTERVAL_LOW(v) AS l FROM t", UnsupportedSQL, "it is a toy"),
        ("SELECT BIT_OR(x) FROM t", TypeMismatch, "BIT_OR"),
        ("SELECT v FROM (SELECT p, BIT_OR(x) AS v FROM t GROUP BY p)", TypeMismatch, "BIT_OR"),
    ):
        with pytest.raises(error, match=words):
            held.query(sql, epsilon=1)
    with pytest.raises(MissingBounds):
        dpsql.Session({"t": FRAME}, budget=dpsql.Budget(1), auto_bounds=False).query(SQL, epsilon=1)


def test_without_its_record_it_is_refused():
    for sql in (SQL, "SELECT BIT_OR(x > 5) FROM t"):
        with pytest.raises(UnsupportedSQL, match=r"REGR_AVGX|BIT_OR"):
            session().query(sql, epsilon=1)


FRESH = """
from dpsql.plan.aggregates import AGGREGATES, pairs
AGGREGATES["REGR_AVGX"] = pairs._pair(
    "REGR_AVGX", "average of x", "RegrAvgx", "nstp",
    lambda sums: (sums.other_centre + sums.t / sums.n, sums.count >= 1), without_interval="it is a toy",
)
import dpsql, pandas as pd
table = dpsql.Table(pd.DataFrame({"y": [1.0] * 9, "x": [2.0] * 9}), bounds={"x": (0, 2), "y": (0, 5)})
held = dpsql.Session({"t": table}, budget=dpsql.Budget(1e7))
print(round(held.query("SELECT REGR_AVGX(y, x, epsilon => 1e6) AS v FROM t", epsilon=1e6).df["v"][0], 2))
for wrong in ("DISTINCT y, x", "y"):
    try:
        held.query(f"SELECT REGR_AVGX({wrong}) AS v FROM t", epsilon=1)
    except dpsql.DPSQLError as error:
        print(error.message)
"""


def test_nothing_but_the_record_is_needed_where_the_package_is_loaded_with_it():
    found = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.splitlines() == [
        "2.0",
        "DISTINCT inside REGR_AVGX is not supported. COUNT(DISTINCT x) is.",
        "REGR_AVGX takes two arguments (y, x).",
    ]


@pytest.mark.parametrize(
    "wrong", [{"moments": "qn"}, {"moments": "nq"}, {"chosen_by": "rank"}, {"estimate": None}, {"moments": "nsq"}]
)
def test_a_record_that_contradicts_itself_is_none(wrong: dict[str, object]):
    said: dict[str, object] = {"moments": "n", "estimate": lambda sums: (sums.count, None), **wrong}
    with pytest.raises(ValueError, match="TOY"):
        AggregateFunction("TOY", "toy", (), **said)  # type: ignore[arg-type]


def test_a_record_is_one_object_wherever_it_goes():
    for record in AGGREGATES.values():
        assert pickle.loads(pickle.dumps(record)) is copy.deepcopy(record) is record


FAMILIES = "dpsql.plan.aggregates."
NAMES_RECORDS = {
    "dpsql.executors.pandas.units.inner_aggregates": "kernels have names; an aggregate without one goes cell by cell",
    "dpsql.executors.pandas.windows.window_values": "windows have kernels of their own: frames, not groups",
    "dpsql.executors.sql.windows": "frames of sums, counts and ends are written as text",
    "dpsql.plan.windows": "which aggregates may stand over a frame, a rule about windows and not about releases",
    "dpsql.sql.rewrite.derived_statistics": "SKEWNESS and its like are arithmetic over sums, which it names",
    "dpsql.sql.bind.windows": "the same words, read of the text",
    "dpsql.sql.bind.looked_up_aggregates": "AVG of equal values is the value, and SUM of them the value times the rows",
    "dpsql.sql.bind.ordered_unit_aggregates": "ordered aggregates of a unit are windows, by the words of the text",
    "dpsql.sql.bind.aggregates": "COUNT(DISTINCT *) is told from APPROX_COUNT_DISTINCT(*) by the word in the text",
    "dpsql.release.bounds.auto_bounds": "medians of columns without bounds get a COUNT beside them",
}
"""Modules of other rooms that name single records, and why."""


OF_ALL = ("AGGREGATES", "AggregateFunction", "Aggregation", "MOST_POINTS", "NoisySums", "Bounds")


def naming_records(tree: ast.Module) -> list[str]:
    """What a module imports of the families, and names of records that it compares with a text."""
    records = set(AGGREGATES) | {"MEDIAN"}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(FAMILIES[:-1]):
            found += [alias.name for alias in node.names if alias.name not in OF_ALL]
        if isinstance(node, ast.Compare):
            texts = [each for part in (node.left, *node.comparators) for each in ast.walk(part)]
            found += [str(t.value) for t in texts if isinstance(t, ast.Constant) and t.value in records]
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "AGGREGATES":
            found.append(ast.unparse(node))
    return found


def test_no_other_room_asks_which_aggregate_it_is():
    named = {
        module: found
        for module, path in modules().items()
        if not f"{module}.".startswith(FAMILIES)
        if (found := naming_records(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert named.keys() == NAMES_RECORDS.keys(), named


@pytest.mark.parametrize(
    "line",
    [
        "from dpsql.plan.aggregates.averages import AVG",
        "from dpsql.plan.aggregates import counts",
        "if each.kind.name == 'AVG': pass",
        "if str(kind) in ('MIN', 'MAX'): pass",
        "own = AGGREGATES['SUM']",
    ],
)
def test_a_room_that_asks_is_seen(line: str):
    assert naming_records(ast.parse(line))
