"""Variances and standard deviations, of one argument and its square."""

from __future__ import annotations

import numpy as np

from dpsql.plan.aggregates.record import AT_LEAST_0, AggregateFunction, Bounds, Found, NoisySums, Solve


def _spread(name: str, tag: str, *nodes: str, sample: bool, root: bool) -> AggregateFunction:
    def estimate(sums: NoisySums) -> Found:
        variance = sums.variance * sums.half**2
        found, some = sums.of_sample(variance) if sample else (variance, sums.count >= 1)
        return (np.sqrt(found) if root else found), some

    def interval(solve: Solve, half: float, _other_half: float) -> Bounds:
        low, high = solve("variance", "nsq", sample)
        return (np.sqrt(low) * half, np.sqrt(high) * half) if root else (low * half**2, high * half**2)

    syntax = tuple(f"{node}(this)" for node in nodes)
    return AggregateFunction(
        name, tag, syntax, moments="nsq", estimate=estimate, interval=interval, values=AT_LEAST_0, is_deviation=root
    )  # fmt: skip


AGGREGATES = (
    _spread("VAR_POP", "variance", "VariancePop", sample=False, root=False),
    _spread("VAR_SAMP", "variance of a sample", "Variance", sample=True, root=False),
    _spread("STDDEV_POP", "deviation", "StddevPop", sample=False, root=True),
    _spread("STDDEV_SAMP", "deviation of a sample", "Stddev", "StddevSamp", sample=True, root=True),
)
