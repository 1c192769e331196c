"""Pairs of columns beside other aggregates of theirs, where NULLs and conditions tell cells of rows apart."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.core.exact import CellPart, CountRows, LatticeShare
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.noise import SharedLaplace
from dpsql.release.design import choose
from dpsql.release.expected_error import error_variance
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.estimate import estimate
from dpsql.release.release import Release, ReleasedValues
from tests.core.checks import B, Shape, U, calibrated, run_exactly, stacked
from tests.core.test_statistics_neighbours import TIGHT, check_query
from tests.seeding import seed

SHAPE = Shape(
    {"x": "float64", "y": "Float64", "z": "float64", "p": "int64", "n": "Int64", "b": "boolean", "g": "str"},
    {
        "bounds": {"x": (0, 10), "y": (-3, 10), "z": (0, 1), "p": (20, 30), "n": (0, 5)},
        "nullable": {"z": False, "p": False, "g": False},
        "keys": {"g": ["a", "c"]},
    },
)


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


def frame(count: int = 500) -> pd.DataFrame:
    draw = random.Random(11)
    rows = []
    for _ in range(count):
        x, y, n = draw.uniform(-1, 11), draw.choice([None, draw.uniform(-3, 10)]), draw.choice([None, 0, 3, 5])
        x = x if draw.random() < 0.8 else math.nan
        rows.append((x, y, draw.random(), draw.randint(20, 30), n, draw.choice([None, True, False]), draw.choice("ac")))
    return SHAPE.frame(rows)


def reals(made: Release) -> np.ndarray[Any, Any]:
    released = made.privatise(run_exactly(made, SHAPE.schema(), frame()))
    found = [estimate(each, released.values) for each in made.estimates]
    return np.array([np.where(each.where_valid(), each.values, np.nan) for each in found], dtype=float)


BY_SHARES = (
    "CORR(y, x), VAR_POP(x)",
    "CORR(y, x), AVG(x), COUNT(*)",
    "AVG(y), COVAR_POP(y, x), COUNT(x), SUM(x)",
    "REGR_SLOPE(y, x), VAR_POP(x), VAR_POP(y), AVG(x), AVG(y), COUNT(*), COUNT(y)",
    "CORR(n, x), AVG(n), COUNT(*)",
    "COVAR_POP(p, z) FILTER (WHERE b), COVAR_POP(p, z) FILTER (WHERE NOT b)",
    "CORR(y, x), CORR(x, y), STDDEV(x)",
    "CORR(y, x) FILTER (WHERE p > 25), CORR(y, x) FILTER (WHERE p <= 25)",
    "CORR(y, x), AVG(x), COUNT_IF(x IS NULL)",
    ", ".join(f"CORR(y, x) FILTER (WHERE p = {each})" for each in range(20, 29)),
)
BY_CLASSES = (
    "VAR_POP(x) FILTER (WHERE p > 25), VAR_POP(x) FILTER (WHERE p <= 25), COUNT(*)",
    "STDDEV(z) FILTER (WHERE b), AVG(z) FILTER (WHERE NOT b)",
    "VAR_POP(x), COUNT(*)",
    "VAR_POP(y), AVG(y), COUNT(*), SUM(y)",
    "CORR(y, z), VAR_POP(y), COUNT(*)",
)
BY_NEITHER = (
    "CORR(y, x), AVG(z), COUNT(*)",  # three values of a row
    "CORR(y, x), COUNT_IF(p > 22), COUNT_IF(p > 24), COUNT_IF(p > 26), COUNT_IF(p > 28), COUNT(*)",
    "VAR_POP(x), VAR_POP(CASE WHEN b THEN x ELSE 0 END), COUNT(*)",  # a constant, and rows of two cells
    "VAR_POP(CASE WHEN b THEN 1 ELSE 0 END), COUNT_IF(b)",
    "CORR(CASE WHEN b THEN x ELSE y END, z), AVG(x)",
    "CORR(x, x), AVG(x), COUNT(*)",
    "COVAR_SAMP(7, 8), AVG(x)",
    "COVAR_POP(x, 7), COVAR_POP(7, y), COUNT(*)",
)


@pytest.mark.parametrize(("asked", "by"), list(itertools.product((*BY_SHARES, *BY_CLASSES, *BY_NEITHER), ("", "g"))))
def test_the_answer_is_the_same(asked: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"SELECT {by}{', ' * bool(by)}{asked} FROM t" + f" GROUP BY {by}" * bool(by)
    made = calibrated(SHAPE.schema(), sql, U, epsilon=10**6)
    forced = []
    for only in (choose._shares, choose._cells):
        monkeypatch.setattr(choose, "CANDIDATES", [only])
        monkeypatch.setattr(choose, "_weighed", lambda lattice, plain, _asked: lattice is plain)
        forced.append(calibrated(SHAPE.schema(), sql, U, epsilon=10**6))
    monkeypatch.undo()
    monkeypatch.setattr(choose, "CANDIDATES", [])
    plain = reals(calibrated(SHAPE.schema(), sql, U, epsilon=10**6))
    assert np.isfinite(plain).all()
    for each in (made, *forced):
        assert np.allclose(reals(each), plain, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("asked", [*BY_SHARES, *BY_CLASSES, *BY_NEITHER])
def test_which_design_it_has(asked: str) -> None:
    """Shares of cells, or their classes; what needs more of a row than both have keeps its design."""
    made = calibrated(SHAPE.schema(), f"SELECT {asked} FROM t", U)
    kinds = {type(each.noise) for each in made.shares}
    inside = [part.of for part in made.exact.parts if isinstance(part, CellPart)]
    if asked in BY_SHARES:
        assert kinds == {SharedLaplace}
        assert len(inside) == len(made.exact.parts)
        assert all(isinstance(part, LatticeShare | CountRows) for part in inside)
    elif asked in BY_CLASSES:
        assert kinds == {ClassLaplace}
    else:
        assert not any(isinstance(part, LatticeShare) for part in inside)


def errors(asked: str, **how: Any) -> list[float]:
    made = calibrated(SHAPE.schema(), f"SELECT {asked} FROM t", U, **how)
    spread = {place: share.noise.spread for share in made.shares for place in share.places}
    return [math.sqrt(error_variance(each, made.lattice, spread)) for each in made.estimates]


@pytest.mark.parametrize("beside", ["AVG(x)", "VAR_POP(x)", "COUNT(*)", "COUNT(y)", "AVG(x), VAR_POP(y), COUNT(*)"])
def test_a_correlation_has_the_error_that_it_has_alone(beside: str) -> None:
    """Other rows than those with both values cost it nothing."""
    found, alone = errors(f"CORR(y, x), {beside}")[0], errors("CORR(y, x)")[0]
    assert found <= 1.01 * alone


def test_variances_of_parts_have_the_error_of_one() -> None:
    both = errors("VAR_POP(x) FILTER (WHERE p > 25), VAR_POP(x) FILTER (WHERE p <= 25)")
    assert max(both) <= 1.01 * errors("VAR_POP(x)")[0]


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize(
    "asked",
    [
        "CORR(y, n), AVG(y), COUNT(*)",
        "CORR(n, y), VAR_POP(n), COUNT(y)",
        "COVAR_POP(n, x), COUNT(*), SUM(n)",
        "VAR_POP(n), COUNT(*)",
        "VAR_POP(y) FILTER (WHERE x > 1), VAR_POP(y) FILTER (WHERE x <= 1)",
    ],
)
def test_neighbours_move_no_further_than_is_paid_for(asked: str, relation: str) -> None:
    for tail in ("", " GROUP BY g"):
        made, met = check_query(f"SELECT {asked} FROM t{tail}", relation, universe=TIGHT)
        assert met.ratio <= 1
        assert relation == B or any(isinstance(part, CellPart) for part in made.exact.parts)


def test_a_public_number_of_rows_stays_exact_beside_shares() -> None:
    made = calibrated(SHAPE.schema(), "SELECT CORR(y, n), AVG(y), COUNT(*) FROM t", B)
    assert [type(each.noise) for each in made.shares] == [SharedLaplace]
    assert any(isinstance(part, CellPart) for part in made.exact.parts)
    assert made.privatise(run_exactly(made, SHAPE.schema(), frame(77))).values[made.estimates[2].count] == 77


DRAWS = 2_000


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ("CORR(y, x), AVG(x), COUNT(*)", (0.99, 0.955, 0.955)),
        ("COVAR_POP(y, x), VAR_POP(x), COUNT(x)", (0.99, 0.99, 0.955)),
        ("VAR_POP(x) FILTER (WHERE p > 25), AVG(x) FILTER (WHERE p <= 25)", (0.99, 0.955)),
    ],
)
def test_intervals_hold_as_often_as_they_say(asked: str, most: tuple[float, ...]) -> None:
    """Those of second moments are a little wider than they have to be, as ever."""
    table, schema = frame(3_000), SHAPE.schema()
    made = calibrated(schema, f"SELECT {asked} FROM t", U)
    exact = run_exactly(made, schema, table)
    noiseless = calibrated(schema, f"SELECT {asked} FROM t", U, epsilon=10**7)
    truths = reals_of(noiseless, noiseless.privatise(run_exactly(noiseless, schema, table)).values)[:, 0]
    released = ReleasedValues((), made.privatise(stacked(exact, DRAWS)).values)
    for output, truth, high in zip(made.query.finish.outputs, truths, most, strict=True):
        ends = interval(made, released, output.expr, 0.95)
        assert ends is not None
        near = 1e-4 * max(1, abs(truth))
        inside = float(np.mean((ends[0] - near <= truth) & (truth <= ends[1] + near)))
        slack = 4 * math.sqrt(0.95 * 0.05 / DRAWS)
        assert 0.95 - slack <= inside <= min(high + slack, 0.995), (output.expr, inside)


def reals_of(made: Release, values: Any) -> np.ndarray[Any, Any]:
    return np.array([estimate(each, values).values for each in made.estimates], dtype=float)
