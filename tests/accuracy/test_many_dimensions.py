"""The law on the cube in many dimensions: what doubles would not hold of its polynomials."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.accuracy.linear_combinations import half_widths
from dpsql.accuracy.truncated_sums import tail_of_sum
from dpsql.core.mechanisms.noise import CubeLaplace

DIMENSIONS = (20, 130, 180, 260, 400)


def tail(dimension: int, ratio: float, t: float) -> float:
    """P(|X + ratio Y| > t) by quadrature: R |u + ratio v|, u and v uniform, R Gamma(dimension + 1)."""
    s = (np.arange(8_000) + 0.5) / 8_000 * (1 + ratio)
    density = np.where(s < 1 - ratio, 1.0, (1 + ratio - s) / (2 * ratio))
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, dimension + 1)))])
    x = t / s[:, np.newaxis]
    above = np.exp(np.arange(dimension + 1) * np.log(x) - x - logs).sum(axis=1)
    return float((density * above).sum() / density.sum())


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("ratio", [1.0, 0.3])
def test_half_widths_of_pairs_hold_in_many_dimensions(dimension: int, ratio: float) -> None:
    for level in (0.5, 0.95, 0.9999):
        (found,) = half_widths("cube", dimension, np.array([[1.0], [ratio]]), level)
        assert tail(dimension, ratio, float(found)) == pytest.approx(1 - level, rel=0.02)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_so_do_the_tails_that_conditions_are_read_of(dimension: int) -> None:
    scale = 2**20
    found = tail_of_sum(CubeLaplace(Fraction(scale), dimension), (1.0, 1.0))
    assert found is not None
    law, step = found
    for t in (0.3 * dimension, 1.2 * dimension, 2.0 * dimension):
        (least, most) = law.log_above(np.array([t * scale / step]))
        exact = math.log(tail(dimension, 1.0, t) / 2)
        assert least[0] - 0.01 <= exact <= most[0] + 0.01
        assert most[0] - least[0] < 0.02
    far = law.log_above(np.array([1e5 * dimension * scale / step]))
    assert far[1][0] < -1e4
