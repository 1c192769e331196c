"""A search for bounds asks for the limits that it is paid for, as all other counts do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.sensitivity.norms import of_one_group
from dpsql.errors import InternalError
from dpsql.release.bounds import auto_bounds
from dpsql.session import prepare


@pytest.fixture(autouse=True)
def planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan that another test has made."""
    monkeypatch.setattr(prepare, "_cache", type(prepare._cache)())


def session(**more: Any) -> dpsql.Session:
    frame = pd.DataFrame({"who": [1, 1, 2, 3], "x": [1.0, 2.0, 3.0, 4.0], "g": ["a", "b", "a", "b"]})
    limits: dict[str, Any] = {"unit": "who", "max_rows": 4, "max_groups": 2, "max_rows_per_group": 3, **more}
    return dpsql.Session({"t": dpsql.Table(frame, bounds={"x": "auto"}, **limits)}, budget=dpsql.Budget(10, 1e-6))


SQL = ("SELECT SUM(x) FROM t", "SELECT g, SUM(x) FROM t GROUP BY g")


@pytest.mark.parametrize("sql", SQL)
def test_all_rows_of_a_unit_are_in_the_one_group(sql: str):
    made = session().explain(sql, epsilon=1, delta=1e-6)._release
    search, of_release = made.plans
    assert search.keys == search.parts == ()
    assert search.limits == of_one_group(made.analysis).bounds.rows
    assert search.limits is not None
    assert (search.limits.rows, search.limits.groups) == (made.analysis.bounds.rows.l1, 1)
    assert [each.rows for each in made.searches.searches] == [search.limits.rows]
    assert of_release == made.exact


@pytest.mark.parametrize("sql", SQL)
@pytest.mark.parametrize("lie", ["none", "more"])
def test_a_search_without_its_limits_is_refused(sql: str, lie: str, monkeypatch: pytest.MonkeyPatch):
    honest = auto_bounds.ExactPlan

    def planted(*args: Any, **how: Any) -> Any:
        made = honest(*args, **how)
        assert made.limits is not None
        return replace(made, limits=None if lie == "none" else replace(made.limits, rows=made.limits.rows + 1))

    monkeypatch.setattr(auto_bounds, "ExactPlan", planted)
    with pytest.raises(InternalError, match="beyond a person's limits"):
        session().explain(sql, epsilon=1, delta=1e-6)


def test_a_lie_about_rows_is_seen_again_where_the_release_is_put_together(monkeypatch: pytest.MonkeyPatch):
    honest = auto_bounds.ExactPlan
    monkeypatch.setattr(auto_bounds, "assert_limited", lambda *_: None)
    monkeypatch.setattr(auto_bounds, "ExactPlan", lambda *args, **how: replace(honest(*args, **how), limits=None))
    with pytest.raises(InternalError, match="beyond a person's limits"):
        session().explain(SQL[0], epsilon=1)
