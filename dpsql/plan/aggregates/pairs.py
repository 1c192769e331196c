"""Covariances, correlations and linear regressions of two arguments (y, x), over the rows where neither is NULL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpsql.plan.aggregates.record import AggregateFunction, Bools, Bounds, Floats, Found, NoisySums, Solve
from dpsql.schema.intervals import Interval

_ASK_FOR_SLOPE = "ask for one of REGR_SLOPE"


def _covariance(sums: NoisySums) -> Found:
    return sums.covariance * sums.half * sums.other_half, sums.count >= 1


def _correlation(sums: NoisySums) -> tuple[Floats, Bools]:
    both = sums.variance * sums.other_variance
    some = (sums.count >= 1) & (both > 0)
    return np.clip(sums.covariance / np.sqrt(np.where(some, both, 1.0)), -1, 1), some


def _determination(sums: NoisySums) -> Found:
    """Return R^2: 1 if y is constant, as in standard SQL; NULL if x is."""
    found, some = _correlation(sums)
    flat = (sums.count >= 1) & (sums.variance <= 0) & (sums.other_variance > 0)
    return np.where(flat, 1.0, found**2), some | flat


def _slope(sums: NoisySums) -> Found:
    some = (sums.count >= 1) & (sums.other_variance > 0)
    ratio = sums.half / (sums.other_half or 1.0)
    return sums.covariance / np.where(some, sums.other_variance, 1.0) * ratio, some


def _intercept(sums: NoisySums) -> Found:
    """Return the mean of y minus the slope times the mean of x."""
    slope, some = _slope(sums)
    y, x = sums.centre + sums.half * sums.s / sums.n, sums.other_centre + sums.other_half * sums.t / sums.n
    return y - slope * x, some


def _covariance_interval(solve: Solve, half: float, other_half: float, *, sample: bool = False) -> Bounds:
    low, high = solve("covariance", "nstp", sample)
    return low * (half * other_half), high * (half * other_half)


def _slope_interval(solve: Solve, half: float, other_half: float) -> Bounds:
    low, high = solve("slope", "ntrsp")  # of y = u on x = v
    ratio = half / other_half
    return low * ratio, high * ratio


_EXAMPLE = "These bounds are an example: choose bounds that most values lie between."


def _pair(
    name: str, tag: str, node: str, moments: str, estimate: Callable[[NoisySums], Found], **own: Any
) -> AggregateFunction:
    return AggregateFunction(
        name, tag, (f"{node}(this, expression)",), moments=moments, estimate=estimate,
        unclipped=(
            f"{name} has two arguments, and contribution bounds are for one.",
            f"Write {name}(CLAMP(y, 0, 100), CLAMP(x, 0, 100)).\n{_EXAMPLE}",
        ),
        **own,
    )  # fmt: skip


AGGREGATES = (
    _pair("COVAR_POP", "covariance", "CovarPop", "nstp", _covariance, interval=_covariance_interval),
    _pair("COVAR_SAMP", "covariance of a sample", "CovarSamp", "nstp",
          lambda sums: sums.of_sample(_covariance(sums)[0]), interval=partial(_covariance_interval, sample=True)),
    _pair("CORR", "correlation", "Corr", "nsqtrp", _correlation, values=Interval(-1, 1),
          interval=lambda solve, _half, _other_half: solve("correlation", "nsqtrp")),
    _pair("REGR_SLOPE", "slope", "RegrSlope", "nstrp", _slope, interval=_slope_interval, is_ratio=True),
    _pair("REGR_INTERCEPT", "intercept", "RegrIntercept", "nstrp", _intercept, without_interval=_ASK_FOR_SLOPE),
    _pair("REGR_R2", "determination", "RegrR2", "nsqtrp", _determination, without_interval=_ASK_FOR_SLOPE),
)  # fmt: skip
