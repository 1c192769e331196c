"""What refusals advise: how far off answers would be for what is left, and how many people a group needs."""

import pandas as pd
import pytest

import dpsql
from dpsql.errors import BudgetExceeded, UnknownGroups

FRAME = pd.DataFrame({"city": ["Brest", "Lyon"] * 200, "age": [30, 40] * 200, "pid": range(400)})
COUNT, GROUPS = "SELECT COUNT(*) AS n FROM t WHERE age > 3", "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


def session(budget: dpsql.Budget, **words: object) -> dpsql.Session:
    table = dpsql.Table(FRAME, bounds={"age": (0, 100)}, **words)
    return dpsql.Session({"t": table}, budget=budget)


def test_what_is_left_is_offered_with_how_far_off_it_would_be():
    asked = session(dpsql.Budget(3))
    asked.query("SELECT SUM(age) AS s FROM t", epsilon=2.6)
    for sql, named in ((COUNT, "n"), ("SELECT SUM(age) AS s FROM t WHERE age > 2", "s")):
        with pytest.raises(BudgetExceeded) as refused:
            asked.query(sql, epsilon=1)
        off = asked.explain(sql, epsilon=0.4).to_dict()["columns"][0]["interval_95"]
        wanted = f"Run it with epsilon=0.4 ({named} ±{off:.3g}), reuse an earlier answer, or ask the data owner."
        assert refused.value.hint == wanted
    assert asked.spent.epsilon == pytest.approx(2.6)
    asked.query(COUNT, epsilon=0.4)  # and so it is


def test_where_no_width_is_known_none_is_told():
    asked = session(dpsql.Budget(3))
    asked.query(COUNT, epsilon=2.6)
    for sql in ("SELECT MEDIAN(age) AS m FROM t", "SELECT AVG(age) AS a FROM t"):
        with pytest.raises(BudgetExceeded) as refused:
            asked.query(sql, epsilon=1)
        assert refused.value.hint.startswith("Run it with epsilon=0.4, reuse")
    asked.query("SELECT COUNT(*) AS n FROM t", epsilon=0.4)
    with pytest.raises(BudgetExceeded, match="Reuse an earlier answer"):
        asked.query("SELECT COUNT(*) AS m FROM t WHERE age > 5", epsilon=1)


def test_refusals_of_unknown_groups_say_how_many_people_are_enough():
    for words, of in (({}, "rows"), ({"unit": "pid", "max_rows": 1}, "people")):
        asked = session(dpsql.Budget(3, 1e-5), **words)
        with pytest.raises(UnknownGroups) as refused:
            asked.query(GROUPS, epsilon=1)
        half = asked.explain(GROUPS, epsilon=1, delta=1e-6)._release.selection.half
        assert f"allow delta=1e-6 where the budget has it: groups of fewer than about {half} {of} are" in str(
            refused.value
        )
    with pytest.raises(UnknownGroups, match=r"fewer than about \d+ rows are then hidden"):
        dpsql.query(FRAME, GROUPS, epsilon=1)
