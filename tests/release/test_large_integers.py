"""Whole numbers beyond 2^53: exact to the last cell, and intervals are of what is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.answer.number_format import interval_texts
from dpsql.plan.expressions import Vector
from dpsql.release import release
from dpsql.release.intervals import intervals as noise_intervals
from dpsql.release.output import integers as release_integers
from dpsql.release.output import select as finish
from dpsql.release.output.integers import _rounded, outward
from dpsql.release.release import ReleasedValues
from dpsql.schema.columns import Type
from dpsql.session.cache import released_text
from tests.lies import Check, Lie, assert_caught

NEAR = 2**60
NONE = 1e8
"""An epsilon without noise, as far as whole numbers show it."""


def frame(values: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"x": np.array(values, dtype=np.int64), "k": np.arange(len(values)) % 2})


def near(many: int = 3_000, width: int = 1_000) -> list[int]:
    return [NEAR + each for each in np.random.default_rng(5).integers(0, width, many).tolist()]


def asked(values: list[int], sql: str, epsilon: float, bounds: tuple[int, int], **more: Any) -> dpsql.Result:
    found: Any = dpsql.query(frame(values), sql, epsilon=epsilon, bounds={"x": bounds}, keys={"k": [0, 1]}, **more)
    assert isinstance(found, dpsql.Result)
    return found


def cells(result: dpsql.Result, name: str) -> list[tuple[Any, Any, Any]]:
    """Value and ends of a column."""
    ends = result.intervals()
    return list(zip(result.df[name].tolist(), ends[f"{name}_low"].tolist(), ends[f"{name}_high"].tolist(), strict=True))


def check_a_sum_is_exact_without_noise() -> None:
    values = near()
    result = asked(values, "SELECT SUM(x) AS s FROM t", NONE, (NEAR, NEAR + 1_000), neighbours="bounded")
    assert cells(result, "s") == [(sum(values),) * 3]
    assert list(result) == [(sum(values),)]
    assert f" {sum(values)} |   ±0 |" in result.to_text()
    assert str(sum(values)) in result._repr_html_()


def check_the_interval_covers_the_exact_sum() -> None:
    """With noise that is small beside what doubles round."""
    values = near()
    covered = 0
    for _ in range(60):
        asked_ = asked(values, "SELECT SUM(x) AS s FROM t", 3, (NEAR, NEAR + 1_000), neighbours="bounded")
        ((value, low, high),) = cells(asked_, "s")
        assert (high - low) // 2 == value - low == high - value <= 2_000
        covered += low <= sum(values) <= high
    assert covered >= 50, "57 are expected"


def test_a_sum_is_exact_without_noise() -> None:
    check_a_sum_is_exact_without_noise()


def test_the_interval_covers_the_exact_sum() -> None:
    check_the_interval_covers_the_exact_sum()


@pytest.mark.parametrize("more", ["", ", COUNT(*) AS n", ", AVG(x) AS a", ", COUNT(*) AS n, VARIANCE(x) AS v"])
def test_whatever_stands_beside_it(more: str) -> None:
    values = [10**15 + 7] * 3_000
    sql, bounds = f"SELECT SUM(x) AS s{more} FROM t", (10**15, 10**15 + 10)
    ((value, low, high),) = cells(asked(values, sql, NONE, bounds, neighbours="bounded"), "s")
    assert value == low == high == 3_000 * (10**15 + 7)
    for epsilon in (0.01, 1, 100, NONE):
        result = asked(values, sql.replace("SUM", "k, SUM") + " GROUP BY k", epsilon, bounds)
        for value, low, high in cells(result, "s"):
            assert high - value == value - low >= 0
            assert type(value) is type(low) is type(high) is int


def test_averages_and_expressions_are_doubles_whose_intervals_cover_the_rounding() -> None:
    values = near(2_999)
    sql = "SELECT AVG(x) AS a, SUM(x) + 1 AS more, -SUM(x) AS less, SUM(x) / 2 AS half FROM t"
    result = asked(values, sql, NONE, (NEAR, NEAR + 1_000), neighbours="bounded")
    total = sum(values)
    exact = {"a": Fraction(total, 2_999), "more": total + 1, "less": -total, "half": Fraction(total, 2)}
    for name, value in exact.items():
        ((shown, low, high),) = cells(result, name)
        assert low <= value <= high
        assert low <= shown <= high
        assert high - low <= 1e-12 * abs(float(value))


def test_ends_of_intervals_as_columns_lie_outside() -> None:
    values = near()
    sql = "SELECT SUM(x) AS s, DP_INTERVAL_LOW(SUM(x)) AS low, DP_INTERVAL_HIGH(SUM(x)) AS high FROM t"
    ((value, low, high),) = asked(values, sql, NONE, (NEAR, NEAR + 1_000), neighbours="bounded")
    assert value == sum(values)
    assert int(low) <= value <= int(high)
    assert high - low <= 2 * math.ulp(high)


def test_a_report_has_all_digits() -> None:
    values = near()
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon={NONE}) SUM(x, report_format => 'JSON') FROM t"
    ((text,),) = dpsql.query(frame(values), sql, bounds={"x": (NEAR, NEAR + 1_000)}, neighbours="bounded")
    told = json.loads(text)["result"]
    assert told["value"] == sum(values)
    ends = told["noise_confidence_interval"]
    assert (ends["lower_bound"], ends["upper_bound"]) == (sum(values), sum(values))


def test_rows_are_in_the_order_of_what_is_shown() -> None:
    """Whose doubles are the same."""
    values = [NEAR + each for each in (3, 1, 2, 5, 4, 0)]
    public = dpsql.Table(frame(values).assign(k=range(6)), public=True)
    for order, found in (("DESC", sorted(values, reverse=True)), ("ASC", sorted(values))):
        sql = f"SELECT k, SUM(x) AS s FROM t GROUP BY k ORDER BY s {order}"
        assert [s for _, s in dpsql.query({"t": public}, sql, epsilon=1)] == found


def test_selects_over_an_answer_keep_all_digits() -> None:
    values = near()
    inner = "(SELECT k, SUM(x) AS s FROM t GROUP BY k)"
    for sql, found in (
        (f"SELECT s FROM {inner} ORDER BY s DESC", sorted((sum(values[::2]), sum(values[1::2])), reverse=True)),
        (f"SELECT SUM(s) FROM {inner}", [sum(values)]),
        (f"SELECT MAX(s) FROM {inner}", [max(sum(values[::2]), sum(values[1::2]))]),
        (f"SELECT m FROM (SELECT MIN(s) AS m FROM {inner})", [min(sum(values[::2]), sum(values[1::2]))]),
    ):
        result = dpsql.query({"t": dpsql.Table(frame(values), public=True, keys={"k": [0, 1]})}, sql, epsilon=1)
        assert [row[0] for row in result] == found


@pytest.mark.parametrize(
    "values",
    [
        [2**62 - 1, 5],
        [2**62] * 70_000,
        [-(2**62)] * 70_000,
        [2**62, -(2**62)] * 1_000 + [3],
        np.random.default_rng(2).integers(-(2**62), 2**62, 100_000).tolist(),
        np.random.default_rng(3).integers(0, 2**46, 1_000).tolist(),
        [2**45, 2**45 - 1, -(2**45)],
    ],
    ids=lambda values: f"{len(values)} from {values[0]}",
)
def test_sums_of_nobodys_rows_are_exact_however_wide_they_are(values: list[int]) -> None:
    """They are said to be exact; a grid of 2^44 steps would not be."""
    table = dpsql.Table(frame(values), public=True)
    for select in ("SUM(x) AS s", "SUM(x) AS s, COUNT(*) AS n", "SUM(x) AS s, AVG(x) AS a"):
        result = dpsql.query({"t": table}, f"SELECT {select} FROM t", epsilon=1)
        ((value, low, high),) = cells(result, "s")
        assert value == low == high == sum(values)
    ((mean, low, high),) = cells(dpsql.query({"t": table}, "SELECT AVG(x) AS a FROM t", epsilon=1), "a")
    exact = Fraction(sum(values), len(values))
    assert low <= mean <= high
    assert low <= exact <= high or abs(Fraction(mean) - exact) <= Fraction(math.ulp(mean))
    by_key = dpsql.query({"t": table}, "SELECT k, SUM(x) AS s FROM t GROUP BY k", epsilon=1)
    assert [each for _, each in by_key] == [sum(values[::2]), *([sum(values[1::2])] if len(values) > 1 else [])]


# Keeping answers.


def test_a_ledger_keeps_all_digits(tmp_path: Path) -> None:
    values = near()
    bounds = {"x": (NEAR, NEAR + 1_000)}

    def session() -> dpsql.Session:
        table = dpsql.Table(frame(values), bounds=bounds, version="1")
        budget = dpsql.Budget(1e9)
        return dpsql.Session({"t": table}, budget=budget, ledger=tmp_path / "l", neighbours="bounded")

    first, second = (session().query("SELECT SUM(x) AS s FROM t", epsilon=1) for _ in range(2))
    assert second.replayed
    assert cells(first, "s") == cells(second, "s")
    assert first.df["s"].tolist()[0] > 2**70


def released(**more: Any) -> ReleasedValues:
    keys = (Vector(np.array(["a", None], dtype=object), np.array([True, False])),)
    return ReleasedValues(keys, np.array([[0.1, 2.0**70], [3.0, 4.0]]), (), **more)


def test_payloads_have_a_number_and_those_of_the_first_form_are_read() -> None:
    kept = released_text.to_bytes(released(integers={0: (2**70 + 1, -5)}))
    assert json.loads(kept)["format"] == released_text.FORMAT == 2
    back = released_text.from_bytes(kept)
    assert back.integers == {0: (2**70 + 1, -5)}
    first = {name: part for name, part in json.loads(kept).items() if name not in ("format", "integers")}
    old = released_text.from_bytes(json.dumps(first).encode())
    assert old.integers == {}
    assert old.values.tolist() == back.values.tolist()
    assert old.keys[0].values.tolist() == back.keys[0].values.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3},
        {"format": "2"},
        {"integers": {"0": [1]}},
        {"integers": {"0": [1, 2.0]}},
        {"integers": {"0": [1, True]}},
        {"integers": {"x": [1, 2]}},
        {"integers": {"0": 5}},
        {"integers": [1]},
    ],
)
def test_payloads_of_another_form_are_refused(change: dict[str, Any]) -> None:
    kept = json.loads(released_text.to_bytes(released()))
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        released_text.from_bytes(json.dumps({**kept, **change}).encode())


def test_an_answer_with_integers_of_what_is_none_is_not_replayed(tmp_path: Path) -> None:
    from dpsql.session.cache import cached_answers as replay

    table = dpsql.Table(frame(near()), bounds={"x": (NEAR, NEAR + 1_000)})
    result = dpsql.Session({"t": table}, budget=dpsql.Budget(9)).query("SELECT AVG(x) FROM t", epsilon=1)
    own = result._released
    assert replay._fits(own, result._release)
    assert not replay._fits(ReleasedValues(own.keys, own.values, own.bounds, {0: (1,)}), result._release)
    assert not replay._fits(ReleasedValues(own.keys, own.values, own.bounds, {7: (1,)}), result._release)


# Arithmetic.


@settings(max_examples=300, deadline=None)
@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_rounding_is_to_the_nearest_halves_to_even(above: int, below: int) -> None:
    assert _rounded(above, below) == round(Fraction(above, below))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-(2**80), 2**80), min_size=1, max_size=5))
def test_ends_as_doubles_lie_outside_and_near(ends: list[int]) -> None:
    held = np.array(ends, dtype=object)
    low, high = outward(held, held)
    for each, below, above in zip(ends, low.tolist(), high.tolist(), strict=True):
        assert Fraction(below) <= each <= Fraction(above)
        assert above - below <= math.ulp(max(abs(below), abs(above)))


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (10**21, 10**21 - 10, 10**21 + 10, "±10"),
        (10**21, 10**21 - 10, 10**21 + 5_000, "999999999999999999990 … 1000000000000000005000"),
        (10**17 + 1, 10**17 - 2_995, 10**17 + 2_997, "±2996"),
        (1e12, 1e12 - 10, 1e12 + 500, "999999999990 … 1000000000500"),
        (1e18, 1e18 - 4_096, 1e18 + 4_096, "±4096"),
        (249.4, 249.4 - 4.2, 249.4 + 4.2, "±4.2"),
        (3.0, 0.0, 6.0, "±3"),
        (0.0, -1e-15, 1e-15, "±1e-15"),
        (1.0, 1.0 - 2**-53, 1.0 + 2**-52, "±2.3e-16"),
        (0.0, -4e-323, 4e-323, "±4e-323"),
        (0.0, 0.0, 5e-324, "±5e-324"),
        (0.0, -1.7e308, 1.7e308, f"±{1.7e308:.0f}"),
        (1e308, -1e308, 1.7e308, f"{-1e308:.0f} … {1.7e308:.0f}"),
        (math.nan, 1.0, 2.0, "1.00 … 2.00"),
    ],
)
def test_what_is_written_beside_a_value_reaches_both_ends(value: Any, low: Any, high: Any, text: str) -> None:
    """However small the interval is beside the value."""
    vector = Vector(np.array([value], dtype=object))
    limits = np.array([low], dtype=object), np.array([high], dtype=object)
    assert interval_texts(vector, Type.REAL, limits) == [text]


def test_ordinary_sizes_take_no_other_way() -> None:
    """Of values that doubles hold nothing is kept beside them."""
    result = asked([5, 6, 7], "SELECT SUM(x), COUNT(*) FROM t", 1, (0, 10))
    assert not result._released.integers
    assert [str(each) for each in result.intervals().dtypes] == ["float64"] * 4


# Lies.


def through_doubles(patch: pytest.MonkeyPatch) -> None:
    """Sums are decoded as doubles alone."""
    patch.setattr(release, "integers_of", lambda *_: {})


def round_the_worth_of_a_step(patch: pytest.MonkeyPatch) -> None:
    honest = release_integers._exactly

    def exactly(lattice: Any, each: Any) -> Any:
        found = honest(lattice, each)
        rounded = {place: int(float(weight)) for place, weight in found.weights.items()}
        return release_integers._ExactSum(rounded, found.below)

    patch.setattr(release_integers, "_exactly", exactly)


def round_what_is_shown(patch: pytest.MonkeyPatch) -> None:
    honest = release_integers.as_array
    patch.setattr(finish, "as_array", lambda integers: honest(tuple(int(float(each)) for each in integers)))


def ends_around_the_double(patch: pytest.MonkeyPatch) -> None:
    honest = release_integers.around
    patch.setattr(
        noise_intervals, "around", lambda integers, width: honest(tuple(int(float(each)) for each in integers), width)
    )


def no_rounding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(noise_intervals, "rounding", lambda *_: None)


LIES: tuple[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]], ...] = (
    (through_doubles, check_a_sum_is_exact_without_noise),
    (through_doubles, check_the_interval_covers_the_exact_sum),
    (round_the_worth_of_a_step, check_a_sum_is_exact_without_noise),
    (round_what_is_shown, check_a_sum_is_exact_without_noise),
    (ends_around_the_double, check_the_interval_covers_the_exact_sum),
    (no_rounding, test_averages_and_expressions_are_doubles_whose_intervals_cover_the_rounding),
)


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_every_lie_is_caught(lie: Lie, check: Check) -> None:
    assert_caught(lie, check, honest=False)
