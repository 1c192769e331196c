"""dpsql.testing, for owners' audits and contract tests: exact integers and draws that nobody pays for."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql import testing
from dpsql.errors import (
    DPSQLError,
    InternalError,
    InvalidArgument,
    InvalidPrivacyParameter,
    MissingBounds,
    UnknownTable,
)
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.testing import insecure_draws, insecure_exact
from tests.core.test_audit import certified_epsilon
from tests.seeding import seed
from tests.test_architecture import imports_of, modules

KEY = bytes(32)
FRAME = pd.DataFrame({"g": ["a", "b", "a", None], "x": [1.0, 2.0, 3.0, 40.0]})


def session(frame: pd.DataFrame = FRAME, **more: Any) -> dpsql.Session:
    table = dpsql.Table(frame, bounds={"x": (0, 4)}, keys={"g": ["a", "b", "c"]})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1, 1e-6), **more)


def visits() -> dpsql.Session:
    """Unit 1 has five rows, of which two count, and unit 2 has one."""
    frame = pd.DataFrame({"u": [1, 1, 1, 1, 1, 2], "x": [0, 1, 2, 3, 4, 4]})
    table = dpsql.Table(frame, unit="u", max_rows=2, bounds={"x": (0, 4)})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1))


# What they return.


def test_the_integers_before_noise_by_group():
    found = insecure_exact(session(), "SELECT g, COUNT(*) FROM t GROUP BY g", KEY, epsilon=1)
    assert found.parts == {("a",): (2,), ("b",): (1,), ("c",): (0,)}
    assert found.grids == {("a",): (), ("b",): (), ("c",): ()}
    alone = insecure_exact(session(), "SELECT COUNT(*) FROM t WHERE x > 1", KEY, epsilon=1)
    assert alone.parts == {(): (3,)}


def test_a_drawn_value_has_its_rows_on_a_grid():
    found = insecure_exact(session(), "SELECT MIN(x) FROM t", KEY, epsilon=1)
    ((points,),) = found.grids.values()
    assert sum(points.values()) == 4
    assert max(points) == max(insecure_exact(session(), "SELECT MAX(x) FROM t", KEY, epsilon=1).grids[()][0])


def test_groups_that_an_answer_would_hide_are_there():
    frame = pd.DataFrame({"s": ["rare", *["usual"] * 50]})
    held = dpsql.Session({"t": frame}, budget=dpsql.Budget(10, 1e-6))
    sql = "SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    found = insecure_exact(held, sql, KEY, epsilon=1, delta=1e-6)
    assert {key: parts[0] for key, parts in found.parts.items()} == {("rare",): 1, ("usual",): 50}
    drawn = insecure_draws(held, sql, 50, epsilon=1, delta=1e-6)
    assert set(drawn["s"]) == {"usual"}


def test_the_key_decides_which_rows_are_kept():
    sql = "SELECT MEDIAN(x) FROM t"
    keys = [bytes([number]) * 32 for number in range(20)]
    found = [insecure_exact(visits(), sql, key, epsilon=1) for key in keys]
    assert found == [insecure_exact(visits(), sql, key, epsilon=1) for key in keys]
    grids = [each.grids[()][0] for each in found]
    assert {sum(grid.values()) for grid in grids} == {3}
    assert len({tuple(grid) for grid in grids}) > 3  # of which rows


def test_of_chosen_bounds_the_integers_of_the_choice():
    table = dpsql.Table(FRAME, bounds={"x": "auto"})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(1))
    found = insecure_exact(held, "SELECT SUM(x) FROM t", KEY, epsilon=1)
    assert sum(sum(grid.values()) for grid in found.grids[()]) == 4
    assert len(insecure_draws(held, "SELECT SUM(x) FROM t", 3, epsilon=1)) == 3


def test_draws_are_as_the_answers_are():
    held = session()
    sql = "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY g ORDER BY g DESC"
    drawn = insecure_draws(held, sql, 20, epsilon=0.5)
    answer = held.query(sql, epsilon=0.5).df
    assert list(drawn.columns) == list(answer.columns)
    assert drawn.index.names == ["run", "row"]
    for run in range(20):
        assert drawn.loc[run]["g"].tolist() == answer["g"].tolist()
    assert drawn["n"].nunique() > 5  # drawn anew


def test_draws_have_the_noise_of_the_release(monkeypatch: pytest.MonkeyPatch):
    seed(monkeypatch, 1)
    drawn = insecure_draws(session(), "SELECT COUNT(*) AS n FROM t", 4_000, epsilon=1)["n"]
    a = math.exp(-1)
    variance = 2 * a / (1 - a) ** 2
    assert abs(drawn.mean() - 4) < 5 * math.sqrt(variance / 4_000)
    assert abs(drawn.var() - variance) < 0.3 * variance


def test_rows_are_kept_anew_in_each_run():
    drawn = insecure_draws(visits(), "SELECT MEDIAN(x) AS m FROM t", 30, epsilon=1e6)["m"]
    assert len(set(drawn)) > 1


def test_an_audit_certifies_epsilon_from_outside(monkeypatch: pytest.MonkeyPatch):
    """Two neighbouring tables are told apart, nearly as well as epsilon allows and no better."""
    seed(monkeypatch, 1)
    draws = [
        insecure_draws(session(frame), "SELECT COUNT(*) AS n FROM t", 6_000, epsilon=1)["n"].to_numpy(float)
        for frame in (FRAME, FRAME.iloc[:3])
    ]
    found = certified_epsilon(*(each[None, :] for each in draws), confidence=0.9999)
    assert 0.5 < found <= 1


# What they leave behind: nothing.


@pytest.mark.parametrize("file", [False, True], ids=["in memory", "in a file"])
def test_nothing_is_charged_written_or_kept(tmp_path: Path, file: bool):
    path = tmp_path / "ledger.db" if file else None
    held = session(ledger=path)
    before = (path.read_bytes() if path else b"", held.ledger_anchor, held.export_ledger())
    sql = "SELECT COUNT(*) FROM t"
    for each in (sql, "SELECT SUM(x) FROM t", "SELECT MEDIAN(x) FROM t"):
        insecure_exact(held, each, KEY, epsilon=1)
        insecure_draws(held, each, 3, epsilon=1)
    assert (path.read_bytes() if path else b"", held.ledger_anchor, held.export_ledger()) == before
    assert held.spent.epsilon == 0
    held.query(sql, epsilon=1)
    assert held.spent.epsilon == 1  # no draw before was kept as its answer
    answer = held.query(sql, epsilon=1).df.iloc[0, 0]
    insecure_draws(held, sql, 5, epsilon=1)  # with nothing left of the budget
    assert held.query(sql, epsilon=1).df.iloc[0, 0] == answer


# Who may call them.

CALLS = {
    "exact": lambda held: insecure_exact(held, "SELECT COUNT(*) FROM t", KEY, epsilon=0.1),
    "draws": lambda held: insecure_draws(held, "SELECT COUNT(*) FROM t", 2, epsilon=0.1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_analysts_session_is_refused_before_a_row_is_read(call: Any, monkeypatch: pytest.MonkeyPatch):
    held = session(analyst="ann")
    with_share = dpsql.Session({"t": FRAME}, budget=dpsql.Budget(1, analysts={"*": dpsql.Budget(0.5)}), analyst="bob")
    monkeypatch.setattr(PandasExecutor, "execute", lambda *_: pytest.fail("rows were read"))
    for each in (held, with_share):
        with pytest.raises(
            InvalidArgument, match="for the owner of the data alone, and this session speaks for analyst"
        ):
            call(each)
        assert each.ledger() == ()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("other", [None, FRAME, {"t": FRAME}, dpsql.Session])
def test_what_is_no_session_is_refused(call: Any, other: object):
    with pytest.raises(InvalidArgument, match=r"needs a dpsql\.Session"):
        call(other)


@pytest.mark.parametrize("key", [b"", bytes(31), "x" * 32, None, bytearray(32), 0])
def test_a_key_is_32_bytes(key: Any):
    with pytest.raises(InvalidArgument, match="key must be 32 bytes"):
        insecure_exact(session(), "SELECT COUNT(*) FROM t", key, epsilon=1)


@pytest.mark.parametrize("runs", [0, -1, True, 2.0, "3", None])
def test_runs_are_a_number(runs: Any):
    with pytest.raises(InvalidArgument, match="runs must be a whole number"):
        insecure_draws(session(), "SELECT COUNT(*) FROM t", runs, epsilon=1)


@pytest.mark.parametrize(
    ("sql", "terms", "error"),
    [
        ("SELECT COUNT(*) FROM other", {"epsilon": 1}, UnknownTable),
        ("SELECT COUNT(*) FROM t", {"epsilon": 0}, InvalidPrivacyParameter),
        ("SELECT COUNT(*) FROM t", {"epsilon": 9}, InvalidPrivacyParameter),
        ("SELECT SUM(LENGTH(g) * x * x / 0.1) FROM t", {}, DPSQLError),
    ],
)
def test_what_explain_refuses_is_refused(sql: str, terms: dict[str, Any], error: type[DPSQLError]):
    held = session(max_epsilon=1)
    for call in (lambda: insecure_exact(held, sql, KEY, **terms), lambda: insecure_draws(held, sql, 2, **terms)):
        with pytest.raises(error):
            call()
    plain = dpsql.Session({"t": FRAME}, budget=dpsql.Budget(1), auto_bounds=False)
    with pytest.raises(MissingBounds):
        insecure_draws(plain, "SELECT SUM(x) FROM t", 1, epsilon=1)


def test_a_failure_quotes_no_row(monkeypatch: pytest.MonkeyPatch):
    held = session()
    held.explain("SELECT COUNT(*) FROM t", epsilon=0.1)  # tried before the engine breaks

    def fail(*_: object) -> None:
        raise RuntimeError("S3CRET")

    monkeypatch.setattr(PandasExecutor, "execute", fail)
    for call in CALLS.values():
        with pytest.raises(InternalError) as caught:
            call(held)
        assert "S3CRET" not in str(caught.value)
        assert "Nothing was charged." in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_integers_do_not_print_themselves():
    found = insecure_exact(session(), "SELECT COUNT(*) FROM t", KEY, epsilon=1)
    assert "4" not in repr(found).split(" at ")[0]


# Where they are.


def test_importing_dpsql_does_not_import_them():
    code = "import sys, dpsql, dpsql.shell.cli; print('dpsql.testing' in sys.modules, hasattr(dpsql, 'testing'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert "testing" not in dpsql.__all__
    assert not [name for name in modules() if "dpsql.testing" in imports_of(name)]


def test_the_docstrings_say_so_loudly():
    for each in (insecure_exact, insecure_draws):
        assert each.__name__.startswith("insecure_")
        assert (each.__doc__ or "").startswith("INSECURE: ")
        for words in ("Charges nothing", "alone", "session of an owner"):
            assert words in (each.__doc__ or ""), words
    assert "NOTHING THAT THE `insecure_` FUNCTIONS RETURN IS PRIVATE" in (testing.__doc__ or "")
