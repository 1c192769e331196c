"""What a SELECT over an answer says of its values: exact or NULL, and never without a word on the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer import render, result
from dpsql.answer.number_format import interval_texts
from dpsql.plan.expressions import Vector
from dpsql.release.output import stage_values
from dpsql.schema.columns import Type
from tests.lies import Check, Lie, assert_caught

NEAR = 2**60
FRAME = pd.DataFrame({"x": [NEAR - 1] * 50 + [7] * 50, "k": [0, 1] * 25 + [2] * 50, "r": np.linspace(0, 1, 100)})
KEYS = {"k": [0, 1, 2]}
LARGE = 25 * (NEAR - 1)
INNER = "(SELECT k, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY k) AS a"


def exact(sql: str) -> dpsql.Result:
    """Of public rows: groups 0 and 1 have a sum that is too large to compute with, group 2 has 350."""
    found: Any = dpsql.query({"t": dpsql.Table(FRAME, public=True, keys=KEYS)}, sql, epsilon=1)
    assert isinstance(found, dpsql.Result)
    return found


def noisy(sql: str, **more: Any) -> dpsql.Result:
    found: Any = dpsql.query({"t": FRAME}, sql, epsilon=1, bounds={"x": (0, NEAR), "r": (0, 1)}, keys=KEYS, **more)
    assert isinstance(found, dpsql.Result)
    return found


def told(found: dpsql.Result) -> bool:
    return any("too large to compute with" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("select", "cells"),
    [
        ("s + 0", [None, None, 350]),
        ("s - s", [None, None, 0]),
        ("-s", [None, None, -350]),
        ("s / 2", [None, None, 175]),
        ("s % 10", [None, None, 0]),
        ("CAST(s AS VARCHAR)", [None, None, "350"]),
        ("COALESCE(s, 0)", [None, None, 350]),
        ("CASE WHEN s + 1 > 5 THEN 1 ELSE 0 END", [None, None, 1]),
        ("CASE WHEN n > 30 THEN s ELSE 0 END", [None, None, 350]),
        ("s > n", [None, None, True]),
        ("GREATEST(s, n)", [None, None, 350]),
    ],
)
def test_what_is_made_of_too_large_a_number_is_null(select: str, cells: list[Any]) -> None:
    found = exact(f"SELECT {select} AS c FROM {INNER}")
    assert [cell for (cell,) in found] == cells
    assert told(found)


@pytest.mark.parametrize(
    ("select", "cells"),
    [
        ("s", [LARGE, LARGE, 350]),
        ("n + 1", [26, 26, 51]),
        ("s > 400", [True, True, False]),
        ("400 > s", [False, False, True]),
        ("s = 350", [False, False, True]),
        ("s <> 350", [True, True, False]),
        ("s BETWEEN 0 AND 400", [False, False, True]),
        ("s IN (349, 350)", [False, False, True]),
        ("s IS NULL", [False, False, False]),
        ("s IS NOT NULL", [True, True, True]),
        ("s > 349.5", [True, True, True]),
        ("CASE WHEN s > 400 THEN n ELSE 0 END", [25, 25, 0]),
    ],
)
def test_comparisons_with_constants_are_exact(select: str, cells: list[Any]) -> None:
    found = exact(f"SELECT {select} AS c FROM {INNER}")
    assert [cell for (cell,) in found] == cells
    assert not told(found)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT k FROM {INNER} WHERE s > 400", [(0,), (1,)]),
        (f"SELECT k FROM {INNER} WHERE s + 0 > 400", []),
        (f"SELECT SUM(s), COUNT(s), COUNT(s + 0), MAX(s) FROM {INNER}", [(2 * LARGE + 350, 3, 1, LARGE)]),
        (f"SELECT SUM(s) + 0, SUM(s) > 5 FROM {INNER}", [(None, True)]),
        (f"SELECT k FROM {INNER} GROUP BY k HAVING SUM(s) > 400", [(0,), (1,)]),
        (f"SELECT s FROM {INNER} ORDER BY s DESC, k LIMIT 1", [(LARGE,)]),
        (f"SELECT s FROM (SELECT s, s * 2 AS d FROM {INNER}) AS b WHERE d > 5", [(350,)]),
    ],
)
def test_rows_and_groups(sql: str, rows: list[Any]) -> None:
    assert list(exact(sql)) == rows


def check_arithmetic_is_exact_or_null_with_a_word() -> None:
    found = noisy(f"SELECT s, s + 0 AS t FROM {INNER}", mechanism="laplace")
    assert all(t is None or t == s for s, t in found)
    assert told(found) == any(abs(s) > NEAR for s, _ in found)


def test_arithmetic_is_exact_or_null_with_a_word() -> None:
    check_arithmetic_is_exact_or_null_with_a_word()


# A word on the noise.


def silent(found: dpsql.Result) -> list[str]:
    """The columns that are said to have no interval."""
    lines = [each for each in found.notes if each.endswith(": no interval")]
    assert len(lines) <= 1
    return lines[0].split(":")[0].split(", ") if lines else []


COUNTS = "(SELECT k, COUNT(*) AS n, AVG(r) AS a FROM t GROUP BY k) AS c"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (f"SELECT MAX(n) AS m FROM {COUNTS}", ["m"]),
        (f"SELECT MIN(a) AS m, SUM(n) AS s, COUNT(*) AS c, MAX(k) AS k FROM {COUNTS}", ["m"]),
        (f"SELECT COUNT(*) AS c, MAX(k) AS m FROM {COUNTS} WHERE n > 20", ["c", "m"]),
        (f"SELECT m + 1 AS p FROM (SELECT MAX(n) AS m FROM {COUNTS}) AS d", ["p"]),
        (f"SELECT k, n, k + 1 AS p, n + 1 AS q FROM {COUNTS}", []),
        (f"SELECT n, COUNT(*) AS c FROM {COUNTS} GROUP BY n", ["n"]),
        ("SELECT REGR_R2(r, x) AS f, COUNT(*) AS n, LN(COUNT(*)) AS l FROM t", ["f"]),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(COUNT(*)) AS l, MEDIAN(r) AS m FROM t", []),
        (f"SELECT k, n, a FROM {COUNTS} ORDER BY n LIMIT 2", []),
        ("SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)", []),
    ],
)
def test_what_has_noise_has_an_interval_or_a_word(sql: str, names: list[str]) -> None:
    assert silent(noisy(sql)) == names


def test_rows_of_nobody_need_no_word() -> None:
    assert silent(exact(f"SELECT MAX(n) AS m FROM {COUNTS}")) == []


def test_hidden_groups_are_chance_too() -> None:
    sql = f"SELECT COUNT(*) AS c, COUNT(n) AS d, MAX(k) AS m FROM {COUNTS}"
    found: Any = dpsql.query({"t": FRAME}, sql, epsilon=1, delta=1e-6, bounds={"r": (0, 1)})
    assert silent(found) == ["c", "d", "m"]


def check_the_largest_of_noisy_values_has_a_word() -> None:
    assert silent(noisy(f"SELECT MAX(n) AS m FROM {COUNTS}")) == ["m"]


# NULL.


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(-5.0, 5.0, "-5 … 5"), (0.0, 0.0, "0 … 0"), (-4e-323, 4e-323, None), (-np.inf, np.inf, "any"), (0, np.inf, "≥ 0")],
)
def test_about_no_value_nothing_lies_evenly(low: float, high: float, text: str | None) -> None:
    vector = Vector(np.zeros(1), np.zeros(1, dtype=bool))
    (found,) = interval_texts(vector, Type.REAL, (np.array([low]), np.array([high])))
    assert "±" not in found
    assert text is None or found == text


def check_a_null_is_not_shown_as_exact() -> None:
    found = exact("SELECT AVG(r) AS a FROM t WHERE k = 9")
    assert list(found) == [(None,)]
    assert "±" not in found.to_text()


def test_a_null_is_not_shown_as_exact() -> None:
    check_a_null_is_not_shown_as_exact()


# Lies.


def hold_numbers_within_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage_values, "_beyond", lambda vector, _: np.zeros(len(vector), dtype=bool))


def say_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(result, "too_large", lambda _: ())


def say_nothing_of_values_without_interval(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(result, "without_interval", lambda *_: ())


def take_nulls_for_zeros(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(render, "interval_texts", lambda vector, *more: interval_texts(Vector(vector.values), *more))


LIES: tuple[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]], ...] = (
    (hold_numbers_within_limits, check_arithmetic_is_exact_or_null_with_a_word),
    (say_nothing, check_arithmetic_is_exact_or_null_with_a_word),
    (say_nothing_of_values_without_interval, check_the_largest_of_noisy_values_has_a_word),
    (take_nulls_for_zeros, check_a_null_is_not_shown_as_exact),
)


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_every_lie_is_caught(lie: Lie, check: Check) -> None:
    assert_caught(lie, check, honest=False)
