"""A threshold on a count that is measured anyway, beside a choice of groups on a part of epsilon of its own."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import dpsql
from dpsql.release.release import Release
from dpsql.release.selection.hidden_groups import chosen_apart

FRAME = pd.DataFrame({"u": range(40), "k": [i % 7 for i in range(40)], "x": [i % 10 for i in range(40)]})
FRAME["y"] = FRAME["x"] // 2
ASKED = ["COUNT(*)", "AVG(x)", "SUM(x)", "VAR_POP(x)", "CORR(x, y)", "AVG(x), AVG(y), COUNT(*)"]


def made(asked: str, epsilon: float, most: int, share: float | None = None) -> Release:
    bounds = {"x": (0, 10), "y": (0, 8)}
    nullable = {"x": False, "y": False}
    table = dpsql.Table(FRAME, unit="u", max_groups=most, max_rows_per_group=1, bounds=bounds, nullable=nullable)
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(9, 1e-3))
    own = "" if share is None else f", group_selection_epsilon = {share * epsilon:.6f}"
    words = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC{own}) " if own else ""
    return held.explain(f"SELECT {words}k, {asked} FROM t GROUP BY k", epsilon=epsilon, delta=1e-6)._release


def worth(release: Release, outputs: int) -> float:
    """The logarithm of each output's error, and that of what a group needs to be shown every other time."""
    return outputs * release.log_error + math.log(release.even_chance or release.selection.half)


@pytest.mark.parametrize("epsilon", [0.1, 1])
@pytest.mark.parametrize("asked", ASKED)
def test_the_threshold_that_is_free_wins(asked: str, epsilon: float) -> None:
    outputs = asked.count("(")
    free = worth(made(asked, epsilon, 4), outputs)
    for share in (0.5, 0.8):
        assert free < worth(made(asked, epsilon, 4, share), outputs) - 0.1


def test_what_a_choice_of_its_own_would_show_is_explained() -> None:
    release = made("AVG(x)", 0.1, 1)
    apart = chosen_apart(release)
    assert apart is not None
    share, people = apart
    assert (float(share), people) == (0.5, made("AVG(x)", 0.1, 1, 0.5).selection.half)
    table = dpsql.Table(FRAME, unit="u", max_rows=1, bounds={"x": (0, 10)})
    said = dpsql.query(table, "EXPLAIN PRIVACY SELECT k, AVG(x) FROM t GROUP BY k", epsilon=0.1, delta=1e-6)
    words = " ".join(str(said).split())
    assert "a choice at 50% of epsilon would show those of 204 as likely" in words
    assert "errors 2 times as large" in words


def test_nothing_is_said_where_the_choice_has_its_own_epsilon_or_all_groups_are_public() -> None:
    assert chosen_apart(made("AVG(x)", 1, 1, 0.5)) is None
    table = dpsql.Table(FRAME, unit="u", max_rows=1, keys={"k": list(range(7))})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(9, 1e-3))
    assert chosen_apart(held.explain("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1)._release) is None
