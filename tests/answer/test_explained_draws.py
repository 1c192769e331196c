"""What explanations and answers say of noise and draws is what is drawn."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer import explanation_builder as reading
from dpsql.core.mechanisms import noise as mechanisms
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace

FRAME = pd.DataFrame(
    {
        "who": [i // 2 for i in range(400)],
        "age": [20, 30, 40, 50] * 100,
        "pay": [1.5, 2.5, 3.5, 4.0] * 100,
        "sex": ["F", "M"] * 200,
        "region": ["a", "b", "c", "d"] * 100,
        "city": [f"city {i % 3}" for i in range(400)],
    }
)
FACTS: dict[str, Any] = {
    "bounds": {"age": (0, 100), "pay": (0, 10)},
    "keys": {"sex": ["F", "M"], "region": ["a", "b", "c", "d"]},
}
LAWS = (
    mechanisms.CubeLaplace,
    mechanisms.SplitLaplace,
    mechanisms.DiscreteGaussian,
    mechanisms.RoundedGaussian,
    GroupVectorLaplace,
)
SELECTS = (
    "COUNT(*)",
    "SUM(age)",
    "AVG(age), COUNT(*)",
    "COUNT_IF(age > 30), COUNT(*), SUM(pay)",
    "VARIANCE(pay)",
    "CORR(age, pay)",
    "COUNT(DISTINCT who)",
    "MEDIAN(age)",
    "MIN(age), MAX(age)",
    "MODE(sex)",
    "APPROX_TOP_K(region, 2)",
    "MEDIAN(age), COUNT(*)",
)
GROUPS = (
    "",
    "GROUP BY sex",
    "GROUP BY city",
    "GROUP BY ROLLUP(sex, region)",
    "GROUP BY CUBE(sex, region)",
    "GROUP BY GROUPING SETS ((sex), (region))",
    "GROUP BY GROUPING SETS ((sex, region), ())",
)
WAYS: tuple[dict[str, Any], ...] = (
    {"epsilon": 1, "delta": 1e-6},
    {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"},
    {"epsilon": 1, "delta": 1e-6, "strategy": "split"},
    {"epsilon": 0.5, "delta": 1e-6, "neighbours": "bounded"},
    {"epsilon": 1, "delta": 1e-6, "unit": "who", "max_rows": 3},
)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The laws that noise is drawn of, in their order."""
    seen: list[Any] = []
    for law in LAWS:
        honest = law.draw

        def draw(self: Any, cells: int, honest: Any = honest) -> Any:
            if cells:  # a trial asks for the shape of none
                seen.append(self)
            return honest(self, cells)

        monkeypatch.setattr(law, "draw", draw)
    return seen


def check_what_is_said(told: dict[str, Any], drawn: list[Any]) -> None:
    """Every coordinate of a noise vector is told of, with its law and its scale in lattice steps, and nothing else."""
    noisy = [each for each in told["releases"] if each["mechanism"] != "exact"]
    counted = {"discrete_gaussian", "discrete_laplace"} & {each["mechanism"] for each in told["draws"]}
    said = Counter((each["mechanism"], f"{each['scale'] / each['granularity']:.9g}") for each in noisy)
    weighed = told["groups"]["strategy"] == "WEIGHTED_GAUSSIAN"  # whose noise is on nothing that is shown
    vectors = [law for law in drawn if not (counted or weighed) or said[law.name, f"{law.scale:.9g}"]]
    many = [len(law.kinds) if isinstance(law, GroupVectorLaplace) else law.dimension for law in vectors]
    names = [(law.name, f"{law.scale:.9g}") for law in vectors]
    assert said == sum((Counter({name: each}) for name, each in zip(names, many, strict=True)), Counter())
    assert all(each["scale"] == 0 for each in told["releases"] if each["mechanism"] == "exact")
    chosen = [each["mechanism"] for each in told["draws"]]
    by_itself = told["groups"]["strategy"] in ("TRUNCATED_GEOMETRIC", "WEIGHTED_GAUSSIAN")
    if told["epsilon"] or told["rho"]:
        assert noisy or any(each != "exact" for each in chosen) or by_itself
        assert "exact" not in chosen
    else:
        assert not noisy
    levels = {tuple(each["level"]): each for each in noisy if "level" in each}.values()
    if levels and all(each["epsilon"] is not None for each in levels) and not chosen:
        assert sum(each["epsilon"] for each in levels) == pytest.approx(told["epsilon"])


def asked(select: str, group: str, way: dict[str, Any], *, explained: bool = False) -> Any:
    sql = f"{'EXPLAIN PRIVACY ' if explained else ''}SELECT {select} FROM t {group}"
    return dpsql.query(FRAME, sql, **{**FACTS, **way})


@pytest.mark.thinned(5)
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("select", SELECTS)
def test_the_dictionary_says_what_is_drawn(select: str, group: str, way: dict[str, Any], drawn: list[Any]) -> None:
    try:
        result = asked(select, group, way)
    except dpsql.errors.UnsupportedSQL:
        assert not drawn
        assert ("SETS" in group or "ROLLUP" in group or "CUBE" in group) or way.get("unit") or "who" in select
        return
    told = result.explanation.to_dict()
    check_what_is_said(told, drawn)
    assert told == asked(select, group, way, explained=True).to_dict()


def test_each_level_says_its_keys_and_its_part_of_the_cost() -> None:
    told = asked(
        "COUNT(*) AS n", "GROUP BY GROUPING SETS ((sex), (region))", {"epsilon": 1, "strategy": "split"}
    ).explanation.to_dict()
    assert [each["level"] for each in told["releases"]] == [["sex"], ["region"]]
    assert {each["name"] for each in told["releases"]} == {"n"}
    assert {each["mechanism"] for each in told["releases"]} == {"discrete_laplace"}
    assert sum(each["epsilon"] for each in told["releases"]) == pytest.approx(1)
    assert [each["scale"] * each["epsilon"] for each in told["releases"]] == pytest.approx([1, 1])


def test_by_rho_levels_have_parts_of_rho() -> None:
    session = dpsql.Session({"t": dpsql.Table(FRAME, **FACTS)}, budget=dpsql.Budget(9, 1e-5), accountant="zcdp")
    told = session.explain("SELECT COUNT(*) FROM t GROUP BY ROLLUP(sex, region)", rho=0.5).to_dict()
    parts = {tuple(each["level"]): each["rho"] for each in told["releases"]}
    assert sum(parts.values()) == pytest.approx(0.5)
    assert "exact" not in {each["mechanism"] for each in told["releases"]}


def test_a_dictionary_that_calls_levels_exact_is_caught(drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: levels have no share of noise, and so what has none is called exact."""
    honest = reading._sum
    monkeypatch.setattr(
        reading, "_sum", lambda release, place, plain, **how: honest(release, place, plain, **{**how, "law": None})
    )
    result = asked("COUNT(*)", "GROUP BY CUBE(sex, region)", {"epsilon": 1})
    with pytest.raises(AssertionError):
        check_what_is_said(result.explanation.to_dict(), drawn)


# Drawn values.


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("MEDIAN(age)", "MEDIAN(age): no interval; rank error at most {} row"),
        ("QUANTILE(age, 0.9)", "QUANTILE(age, 0.9): no interval; rank error at most {} row"),
        ("MODE(sex)", "MODE(sex): no interval; its count is at most {} row"),
        ("APPROX_TOP_K(region, 2)", "APPROX_TOP_K(region, 2): no interval; its count is at most {} row"),
        ("MIN(age)", "from the least value, rank error at most {} row"),
        ("MAX(age)", "from the largest value, rank error at most {} row"),
        ("MEDIAN(pay)", "of the best candidate's (95 %)"),
    ],
)
@pytest.mark.parametrize("group", ["", "GROUP BY sex"])
def test_answers_say_how_far_off_drawn_values_are(select: str, words: str, group: str) -> None:
    result = asked(f"{select} AS m", group, {"epsilon": 1})
    (told,) = result.explanation.to_dict()["draws"]
    line = next(each for each in result.notes if words.format(f"{told['rows_off_95']:,}") in each)
    assert line in result.to_text().splitlines()
    assert line.replace("'", "&#x27;") in result._repr_html_()
    explained = " ".join(str(asked(f"{select} AS m", group, {"epsilon": 1}, explained=True)).split())
    assert line.split("; ", 1)[1][:20] in explained


def test_drawn_values_of_nobodys_rows_are_exact() -> None:
    result = dpsql.query({"t": dpsql.Table(FRAME, public=True)}, "SELECT MEDIAN(age) FROM t", epsilon=1)
    assert not any("rank error" in each for each in result.notes)


def test_a_replayed_answer_says_it_too() -> None:
    session = dpsql.Session({"t": dpsql.Table(FRAME, **FACTS)}, budget=dpsql.Budget(9))
    first, second = (session.query("SELECT MEDIAN(age) FROM t", epsilon=1) for _ in range(2))
    assert second.replayed
    assert [each for each in first.notes if "rank error" in each] == [
        each for each in second.notes if "rank error" in each
    ]


@pytest.mark.parametrize("aggregate", ["MIN", "MAX"])
def test_ends_are_as_far_off_as_is_said(aggregate: str) -> None:
    """By draws of many groups with rows enough; of fewer than the rank it may be any value, and that is said."""
    groups, rows = 400, 200
    x = np.linspace(4, 6, rows)
    frame = pd.DataFrame({"k": np.repeat(np.arange(groups), rows), "x": np.tile(x, groups)})
    result: Any = dpsql.query(
        frame,
        f"SELECT k, {aggregate}(x) AS e FROM t GROUP BY k",
        epsilon=1,
        bounds={"x": (0, 10)},
        keys={"k": list(range(groups))},
    )
    (draw,) = result._release.draws
    ranks = [int((x >= e).sum() if aggregate == "MAX" else (x <= e).sum()) for e in result.df["e"].tolist()]
    held = [abs(rank - draw.rank) <= draw.rows_off(0.95) for rank in ranks]
    assert np.mean(held) >= 0.95
    assert np.mean([rank > 0 for rank in ranks]) >= 0.95
    assert "arbitrary with fewer rows" in result.to_text()
