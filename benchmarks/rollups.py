"""How accurate the levels of ROLLUP and CUBE are at equal total epsilon: split evenly, made consistent, split well.

python benchmarks/rollups.py [--runs 2000] [--json FILE]

Counts of a made-up table, Laplace noise (of NumPy, continuous) in every measured level, total epsilon 1. `equal` is
each level as it was measured, with an even share of epsilon; `consistent` the least-squares estimates from the same
draws; `chosen` the least-squares estimates where `allocation` chose the levels to measure and their shares, `guarded`
so with a guard of 1/2. Root mean square errors over runs and cells have their standard errors after the sign; `theory`
is the closed form of `variances_of`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from measure import Row, environment, show
from numpy.typing import NDArray

from dpsql.accuracy.hierarchies import GroupingSet, allocation, consistent, variances_of

Floats = NDArray[np.float64]
Shares = Mapping[GroupingSet, Fraction]

EPSILON = 1.0
SEED = 20_240_229
BATCH = 250  # runs at once
SIZES = {"state": 51, "education": 16, "sex": 2}
ROLLUP_OF_3 = ((0, 1, 2), (0, 1), (0,), ())
CUBE_OF_2 = ((0, 1), (0,), (1,), ())
WAYS = ("equal", "consistent", "chosen", "guarded")


def noise(shares: Shares) -> dict[GroupingSet, float]:
    """The variance of the Laplace noise in each measured level."""
    return {each: 2 / (float(share) * EPSILON) ** 2 for each, share in shares.items()}


def errors(truth: Mapping[GroupingSet, Floats], shares: Shares, runs: int, draw: np.random.Generator) -> list[Floats]:
    """For levels as measured and as estimated: squared errors of shape (runs, levels), means over a level's cells; NaN
    where a level was not measured."""
    found: list[list[Floats]] = [[], []]
    for start in range(0, runs, BATCH):
        count = min(BATCH, runs - start)
        noisy = {
            each: truth[each] + draw.laplace(0, 1 / (float(share) * EPSILON), (count, *truth[each].shape))
            for each, share in shares.items()
        }
        for place, answers in enumerate((noisy, consistent(noisy, noise(shares), list(truth)))):
            off = [
                ((answers[each] - exact) ** 2).reshape(count, -1).mean(axis=1)
                if each in answers
                else np.full(count, math.nan)
                for each, exact in truth.items()
            ]
            found[place].append(np.stack(off, axis=1))
    return [np.concatenate(each) for each in found]


def root(squares: Floats) -> tuple[float, float]:
    """The root of the mean over runs, and its standard error."""
    value = math.sqrt(squares.mean())
    return value, float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * value)


def levels(keys: Sequence[str], wanted: Sequence[GroupingSet], runs: int) -> list[Row]:
    """A row for each level, with its shares chosen and guarded, and one for the geometric mean of levels, which
    `allocation` without a guard makes least."""
    sizes = [SIZES[key] for key in keys]
    draw = np.random.default_rng(SEED)
    finest = draw.poisson(40, sizes).astype(np.float64)
    truth = {
        each: np.asarray(finest.sum(axis=tuple(key for key in range(len(sizes)) if key not in each))) for each in wanted
    }
    even = dict.fromkeys(wanted, Fraction(1, len(wanted)))
    chosen = allocation(sizes, wanted, "laplace")
    guarded = allocation(sizes, wanted, "laplace", guard=0.5)
    measured, estimated = errors(truth, even, runs, draw)
    others = [errors(truth, some, runs, draw)[1] for some in (chosen, guarded)]
    squares = dict(zip(WAYS, (measured, estimated, *others), strict=True))
    stated = [variances_of(noise(some), sizes, wanted) for some in (even, chosen, guarded)]
    theory = dict(zip(WAYS, (noise(even), *stated), strict=True))
    rows: list[Row] = []
    for place, each in enumerate(wanted):
        row: dict[str, object] = {
            "level": ", ".join(keys[key] for key in each) or "()",
            "cells": math.prod(sizes[key] for key in each),
            "shares": " / ".join(f"{float(some[each]):g}" if each in some else "-" for some in (chosen, guarded)),
        }
        for way in WAYS:
            row |= {way: root(squares[way][:, place]), f"{way}, theory": math.sqrt(theory[way][each])}
        rows.append(row)
    mean: dict[str, object] = {"level": "geometric mean", "cells": None, "shares": "-"}
    for way in WAYS:
        roots = [root(squares[way][:, place])[0] for place in range(len(wanted))]
        mean |= {
            way: math.exp(np.mean(np.log(roots))),
            f"{way}, theory": math.exp(np.mean(np.log(list(theory[way].values()))) / 2),
        }
    return [*rows, mean]


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of the levels of ROLLUP and CUBE")
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--json", type=Path, help="write all numbers to this file too")
    said = parser.parse_args()
    sections = {
        "ROLLUP (state, education, sex)": levels(("state", "education", "sex"), ROLLUP_OF_3, said.runs),
        "CUBE (education, sex)": levels(("education", "sex"), CUBE_OF_2, said.runs),
    }
    print(
        f"# Rollups\n\nRMSE of counts over {said.runs} runs ± its standard error, Laplace, total epsilon {EPSILON:g}."
    )
    for title, rows in sections.items():
        show(title, rows)
    if said.json:
        found = {"environment": environment(), "runs": said.runs, **sections}
        said.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
