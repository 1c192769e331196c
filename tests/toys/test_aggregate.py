"""What a new aggregate takes today. It is not one record: beside a line in the list of kinds it needs one in each of
the files below, even where, as here, it is of a family that is there. Taking a file off that list is progress; adding
one is not.

The toy is REGR_AVGX(y, x), the average of x over the rows where neither is NULL: of the family of pairs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlglot import exp

import dpsql
from dpsql.errors import MissingBounds, TypeMismatch, UnsupportedSQL
from dpsql.plan import aggregates as kinds
from dpsql.plan.aggregates import AggregateKind
from dpsql.release import estimate
from dpsql.release.design import encodings
from dpsql.session import canonical_forms, prepare
from dpsql.sql import aggregate_calls, aggregates, grammar, private
from dpsql.testing import insecure_draws
from tests.test_architecture import ROOT, modules

TAKES = (
    "dpsql/plan/aggregates.py",  # the kind, and its family
    "dpsql/sql/grammar.py",  # which arguments its node may have
    "dpsql/sql/aggregate_calls.py",  # which node is written for it
    "dpsql/sql/aggregates.py",  # whether it has an interval
    "dpsql/release/design/encodings.py",  # which shares of a row it needs
    "dpsql/release/estimate.py",  # how it follows from noisy sums
    "dpsql/session/canonical_forms.py",  # its name in the ledger's keys
)
"""Files that have to say something of it."""
FAMILIES = ("SPREADS", "PAIRS", "EXACT", "RANKED", "CHOSEN")
MOST_THAT_NAME_KINDS = 36
"""Files of dpsql/ beside the list of kinds that name single kinds or families, each of which a new one has to be
thought of in. Lower it when they become fewer; it has room for files that are only divided."""


def naming_kinds() -> list[str]:
    """The files that name an aggregate's kind, or a family of kinds."""
    found = []
    for path in modules().values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            of_kind = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if (of_kind and node.value.id == "AggregateKind") or (isinstance(node, ast.Name) and node.id in FAMILIES):
                found.append(str(path.relative_to(ROOT)))
                break
    return sorted(set(found) - {"dpsql/plan/aggregates.py"})


def of_family(patch: pytest.MonkeyPatch, kind: Any) -> None:
    """What follows from the sets of kinds in plan/aggregates.py, which the modules that use them hold by name."""
    before = kinds.PAIRS
    for name, room in list(sys.modules.items()):
        if name.startswith("dpsql.") and getattr(room, "PAIRS", None) is before:
            patch.setattr(room, "PAIRS", before | {kind})
    patch.setattr(encodings, "_LINEAR", encodings._LINEAR | {kind})
    patch.setattr(private.PrivateSelect, "kinds", private.PrivateSelect.kinds | {kind})


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[AggregateKind]:
    kind: Any = str.__new__(AggregateKind, "REGR_AVGX")
    kind._name_ = kind._value_ = "REGR_AVGX"
    of_family(monkeypatch, kind)
    monkeypatch.setitem(grammar.RULES, exp.RegrAvgx, grammar._rule("this expression"))
    monkeypatch.setitem(aggregate_calls.AGGREGATES, exp.RegrAvgx, kind)
    monkeypatch.setattr(aggregates, "WITHOUT_INTERVAL", aggregates.WITHOUT_INTERVAL | {kind})
    monkeypatch.setattr(encodings, "_SLOPES", encodings._SLOPES | {kind})
    monkeypatch.setitem(estimate._STATISTICS, kind, _average_of_x)
    monkeypatch.setitem(canonical_forms.NAMES, kind, "average of x")
    prepare._cache.clear()
    yield kind
    prepare._cache.clear()


def _average_of_x(each: Any, read: Any) -> Any:
    return each.moments.centre + each.moments.other_half * read.t / read.n, read.count >= 1


FRAME = pd.DataFrame({"y": [1.0, None, 3.0, 4.0] * 50, "x": [2.0, 9.0, None, 8.0] * 50, "g": ["a", "b"] * 100})
SQL = "SELECT REGR_AVGX(y, x) AS v FROM t"


def session() -> dpsql.Session:
    table = dpsql.Table(FRAME, bounds={"x": (0, 10), "y": (0, 5)}, keys={"g": ["a", "b"]})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e6))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (SQL, [5.0]),
        ("SELECT COUNT(*) AS n, REGR_AVGX(y, x) AS v FROM t", [5.0]),
        ("SELECT REGR_AVGX(y, x) AS v, REGR_SLOPE(y, x) AS b, VAR_POP(x) AS w FROM t", [5.0]),
        ("SELECT g, REGR_AVGX(y, x) AS v FROM t GROUP BY g ORDER BY g", [2.0, 8.0]),
        ("SELECT REGR_AVGX(y, x) AS v FROM t WHERE x > 5", [8.0]),
    ],
)
def test_a_query_uses_it_from_text_to_answer(sql: str, expected: list[float]):
    assert session().query(sql, epsilon=1e4).df["v"].tolist() == pytest.approx(expected, abs=0.01)
    drawn = insecure_draws(session(), sql, 20, epsilon=1)["v"]
    assert drawn.nunique() > 1


@pytest.mark.usefixtures("toy")
def test_it_is_explained_refused_and_given_again_as_others_are():
    held = session()
    explained = held.explain(SQL, epsilon=1)
    assert "REGR_AVGX from these" in str(explained)
    assert explained.to_dict()["epsilon"] == 1
    first, second = (held.query(SQL, epsilon=1) for _ in range(2))
    assert first.df.equals(second.df)
    assert held.spent.epsilon == 1
    with pytest.raises(TypeMismatch):
        held.query("SELECT REGR_AVGX(y, g) FROM t", epsilon=1)
    with pytest.raises(MissingBounds):
        dpsql.Session({"t": FRAME}, budget=dpsql.Budget(1)).query(SQL, epsilon=1)


def test_without_its_lines_it_is_refused():
    with pytest.raises(UnsupportedSQL, match="REGR_AVGX"):
        session().query(SQL, epsilon=1)


def test_what_it_takes_is_on_record():
    """A kind is named in so many files; those that a new one has to touch are among them, or hold what is written."""
    named = naming_kinds()
    assert len(named) <= MOST_THAT_NAME_KINDS, named
    assert set(TAKES) <= {*named, "dpsql/plan/aggregates.py", "dpsql/sql/grammar.py"}
    page = Path(ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    section = page.split("## An aggregate\n")[1].split("\n## ")[0]
    assert all(each.removeprefix("dpsql/") in section for each in TAKES)
