"""How well private automatic bounds do: errors of SUM and AVG, the choice of bounds included, beside other ways.

python benchmarks/auto_bounds.py [--json FILE]

The rule: candidate bounds 0 = B_0 < B_1 < ... two to an octave, f(B) the number of rows beyond B, and one draw of
`permute_and_flip` for the score -(f(B) + COST / epsilon_b * s(B)), s(B) the half octaves up to B: a bound is raised by
half an octave if that spares more than COST / epsilon_b rows from clipping. Upper and lower bound are searched for in
the rows above and below 0, which are disjoint, so that each search has all of epsilon_b = SHARE * epsilon: a row added
moves the counts of one search only, by 0 or 1 and all the same way. What is left of epsilon is spent on the answer.

Every error is relative to the true answer (absolute where that is 0), in percent, over SETS data sets with RUNS draws
each. The rule is drawn by the exact sampler, which has no seed; all else is NumPy with fixed seeds. Real numbers are
multiplied by one random factor between 1 and 2 for each data set, so that no grid is lucky. `best` are the fixed bounds
of least expected error at that epsilon, `loose` about ten times the largest size; neither is private. SUM has Laplace
noise of the larger bound over epsilon. AVG is made of the sums of y and 1 - y, y the place within the bounds, each with
noise 1 / epsilon, which together cost epsilon (Kulesza, Suresh, Wang, ICML 2024).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from measure import Row, environment, show
from numpy.typing import NDArray

from dpsql.privacy.choosing import permute_and_flip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARE, COST = 0.3, 0.7
SETS, RUNS, SEED = 10, 60, 20
SIZES, EPSILONS = (100, 1_000, 100_000), (0.1, 1.0, 3.0)
SCORED = [(n, epsilon) for n in SIZES for epsilon in EPSILONS if n * epsilon >= 100]
DATA: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "lognormal(0, 1)": lambda draw, n: draw.lognormal(0, 1, n),
    "lognormal(0, 2)": lambda draw, n: draw.lognormal(0, 2, n),
    "uniform(0, 100)": lambda draw, n: draw.uniform(0, 100, n),
    "Pareto(1.5)": lambda draw, n: 1 + draw.pareto(1.5, n),
    "normal(1000, 10)": lambda draw, n: draw.normal(1000, 10, n),
    "normal(0, 1)": lambda draw, n: draw.normal(0, 1, n),
    "constant 7": lambda _, n: np.full(n, 7.0),
    "integers 0..9": lambda draw, n: draw.integers(0, 10, n).astype(np.float64),
    "all zeros": lambda _, n: np.zeros(n),
}


@dataclass(frozen=True)
class Grid:
    """Candidate bounds, ascending from 0, and the half octaves s up to each, as the rule counts them."""

    bounds: Floats
    steps: Ints

    @classmethod
    def of(cls, integer: bool) -> Grid:
        """2^k and 1.5 2^k up to 2^62, from 2^-4 on, of integers from 1. Below, 2^-32, 2^-28, ... count as an octave
        each: fewer rows then suffice to get past small values, of which few columns consist."""
        halves = np.arange(0 if integer else -8, 125)
        fine = np.where(halves % 2, 1.5, 1.0) * 2.0 ** (halves // 2)
        coarse = np.empty(0) if integer else 2.0 ** np.arange(-32, -4, 4)
        first = 4 if integer else 2 * len(coarse) + 2
        steps = np.concatenate([[0], 2 * np.arange(1, len(coarse) + 1), first + np.arange(len(fine))])
        bounds = np.concatenate([[0.0], coarse, fine])
        kept = (bounds % 1 == 0) | (not integer)
        return cls(bounds[kept], steps[kept].astype(np.int64))


GRIDS = {integer: Grid.of(integer) for integer in (False, True)}


@dataclass(frozen=True)
class Side:
    """One side of 0: for every bound of a grid the rows beyond it, and the sum of sizes clipped to it."""

    grid: Grid
    beyond: Ints
    clipped: Floats

    @classmethod
    def of(cls, sizes: Floats, grid: Grid) -> Side:
        ordered = np.sort(sizes)
        inside = np.searchsorted(ordered, grid.bounds, side="right")
        sums = np.concatenate([[0.0], np.cumsum(ordered)])[inside]
        beyond = len(ordered) - inside
        return cls(grid, beyond, sums + beyond * grid.bounds)


@dataclass(frozen=True)
class Sample:
    """A data set's rows above 0, its rows below 0, and all its rows by size."""

    rows: int
    total: float
    above: Side
    below: Side
    size: Side


@lru_cache(maxsize=64)
def samples(name: str, rows: int) -> list[Sample]:
    """The same data sets for every way and every epsilon."""
    draw = np.random.default_rng([SEED, rows, *name.encode()])
    integer = name.startswith("integers")
    grid, found = GRIDS[integer], []
    for scale in np.ones(SETS) if integer else 2.0 ** draw.random(SETS):
        values = DATA[name](draw, rows) * scale
        sides = (Side.of(sizes, grid) for sizes in (values[values > 0], -values[values < 0], np.abs(values)))
        found.append(Sample(rows, float(values.sum()), *sides))
    return found


@dataclass(frozen=True)
class Trial:
    """RUNS draws at this epsilon, and the generator of their noise."""

    epsilon: float
    draw: np.random.Generator

    def share(self, share: float) -> Trial:
        return replace(self, epsilon=share * self.epsilon)

    def laplace(self, columns: int) -> Floats:
        return self.draw.laplace(size=(RUNS, columns)) / self.epsilon

    def exponential(self, columns: int) -> Floats:
        return self.draw.exponential(size=(RUNS, columns)) / self.epsilon


Search = Callable[[Side, Trial], Ints]  # the places of the bounds chosen, shape (RUNS,)


def penalised(cost: float = COST, *, of_sums: bool = False) -> Search:
    """The rule, drawn exactly: gaps in thousandths of a row. `of_sums` has h(B) = (S(B') - S(B)) / (B' - B), S the
    clipped sum and B' the next bound, in place of f(B)."""

    def search(side: Side, trial: Trial) -> Ints:
        gain = np.append(np.diff(side.clipped) / np.diff(side.grid.bounds), 0.0) if of_sums else side.beyond
        scores = np.rint(1_000 * gain).astype(np.int64) + round(1_000 * cost / trial.epsilon) * side.grid.steps
        gaps = np.broadcast_to(scores - scores.min(), (RUNS, len(scores)))
        return np.asarray(permute_and_flip(gaps, Fraction(str(round(trial.epsilon, 9))) / 1_000), dtype=np.int64)

    return search


def above_threshold(split: float, threshold: float, *, one_sided: bool = False, down: bool = False) -> Search:
    """From the smallest bound to the first with a noisy count at or below the noisy threshold, or `down` from the
    largest to the last before one above it. `split` is the threshold's part of epsilon. One-sided noise is exponential:
    rho is added to a count and nu taken from it. It costs no more than Laplace noise: a row less is made up for by rho
    + 1 everywhere and nu + 1 in the last count, a row more by nu + 1 in the last alone."""

    def search(side: Side, trial: Trial) -> Ints:
        bar, count = trial.share(split), trial.share(1 - split)
        n = len(side.beyond)
        noise = bar.exponential(1) - count.exponential(n) if one_sided else bar.laplace(1) + count.laplace(n)
        below = side.beyond + noise <= threshold / trial.epsilon
        stop = ~below[:, ::-1] if down else below
        first = np.where(stop.any(axis=1), stop.argmax(axis=1), n)
        return np.asarray(np.clip(n - first if down else first, 0, n - 1))

    return search


def histogram(threshold: float) -> Search:
    """The upper end of the last cell between two bounds whose noisy count reaches the threshold (Google's
    ApproxBounds; Wilson and others, "Differentially Private SQL with Bounded User Contribution", 2020)."""

    def search(side: Side, trial: Trial) -> Ints:
        cells = -np.diff(side.beyond)
        kept = cells + trial.laplace(len(cells)) >= threshold / trial.epsilon
        return np.where(kept.any(axis=1), len(cells) - kept[:, ::-1].argmax(axis=1), 0)

    return search


def errors_at(sample: Sample, upper: Ints, lower: Ints, trial: Trial) -> Floats:
    """Errors of SUM and AVG, shape (2, RUNS), with upper and lower bound at these places of the grid."""
    high, low = sample.above.grid.bounds[upper], -sample.above.grid.bounds[lower]
    exact = sample.above.clipped[upper] - sample.below.clipped[lower]
    total = exact + trial.laplace(1)[:, 0] * np.maximum(high, -low)
    width = high - low
    share = (exact - low * sample.rows) / np.where(width > 0, width, 1)
    first, second = np.array([share, sample.rows - share]) + trial.laplace(2).T
    count = first + second
    place = np.clip(np.where(count > 0, first / np.where(count > 0, count, 1), 0.5), 0, 1)
    off = np.array([total - sample.total, low + width * place - sample.total / sample.rows])
    scale = abs(sample.total) or 1
    return np.asarray(np.abs(off) / np.array([[scale], [scale / sample.rows if sample.total else 1]]))


Answer = Callable[[Sample, Trial], Floats]  # as `errors_at`


def chosen(share: float, search: Search, *, sides: int = 2) -> Answer:
    """Bounds chosen by two searches, above and below 0, or [-B, B] by one in all rows, with this share of epsilon."""

    def answer(sample: Sample, trial: Trial) -> Floats:
        searched = (sample.above, sample.below) if sides == 2 else (sample.size,)
        places = [search(side, trial.share(share)) for side in searched]
        return errors_at(sample, places[0], places[-1], trial.share(1 - share))

    return answer


def fixed(sample: Sample, trial: Trial, *, loose: bool = False) -> Floats:
    """Bounds [-B, B] of least expected error of SUM, cut to the data's range; `loose`: seven half octaves beyond it."""
    bounds, clipped = sample.size.grid.bounds[1:], sample.size.clipped[1:]
    lost = clipped[-1] - clipped
    expected = lost + bounds / trial.epsilon * np.exp(-lost * trial.epsilon / bounds)  # of |lost + Laplace noise|
    place = 1 + int(np.argmin(expected))
    ends = [int(np.argmin(side.beyond)) for side in (sample.above, sample.below)]  # no row is beyond
    upper, lower = (np.full(RUNS, end + 7 * (end > 0) if loose else min(place, end)) for end in ends)
    return errors_at(sample, upper, lower, trial)


WAYS: dict[str, Answer] = {
    "rule": chosen(SHARE, penalised()),
    "one search": chosen(SHARE, penalised(), sides=1),
    "rule, h": chosen(SHARE, penalised(of_sums=True)),
    "up, exponential": chosen(0.3, above_threshold(0.7, 1, one_sided=True)),
    "up, Laplace": chosen(0.3, above_threshold(0.5, 4)),
    "down, Laplace": chosen(0.4, above_threshold(0.5, 20, down=True)),
    "histogram": chosen(0.4, histogram(8)),
    "best": fixed,
    "loose": partial(fixed, loose=True),
}
"""Each with the constants that did best for it, of those tried: by the median of `scores`."""


def errors(name: str, rows: int, epsilon: float, answer: Answer) -> Floats:
    """Shape (2, SETS * RUNS)."""
    trial = Trial(epsilon, np.random.default_rng([SEED, rows, round(1_000 * epsilon), *name.encode()]))
    return np.concatenate([answer(sample, trial) for sample in samples(name, rows)], axis=1)


def both(off: Floats) -> str:
    """Median and mean in percent."""
    found = 100 * np.array([np.median(off), off.mean()])
    median, mean = (f"{v:.2g}" if v < 99.5 else f"{v:,.0f}" if v < 1e4 else f"{v:.0e}" for v in found.tolist())
    return f"{median} ({mean})"


def compared(place: int) -> list[Row]:
    """SUM (place 0) or AVG (1) of 1,000 rows at epsilon 1 by every way."""
    return [{"data": name} | {way: both(errors(name, 1_000, 1, WAYS[way])[place]) for way in WAYS} for name in DATA]


def rule() -> list[Row]:
    """SUM and AVG by the rule for all sizes and epsilons."""
    rows: list[Row] = []
    for name, n in product(DATA, SIZES):
        found = {epsilon: errors(name, n, epsilon, WAYS["rule"]) for epsilon in EPSILONS}
        cells = {f"{of} {e:g}": both(found[e][place]) for e, (place, of) in product(found, enumerate(("SUM", "AVG")))}
        rows.append({"data": name, "rows": n} | cells)
    return rows


def scores() -> list[Row]:
    """Every way, and the rule with other constants: geometric means of its errors of SUM over those of `best`."""
    ways = {way: WAYS[way] for way in list(WAYS)[:-2]}
    for share, cost in product((0.2, 0.3, 0.4), (0.5, 0.7, 0.9)):
        ways[f"share {share:g}, cost {cost:g}"] = chosen(share, penalised(cost))
    settings = [(name, n, epsilon) for name, (n, epsilon) in product(list(DATA)[:-1], SCORED)]
    least = [errors(*setting, fixed)[0] for setting in settings]
    rows: list[Row] = []
    for label, way in ways.items():
        pairs = [(errors(*setting, way)[0], low) for setting, low in zip(settings, least, strict=True)]
        ratios = np.log([[of(off) / of(low) for of in (np.median, np.mean)] for off, low in pairs])
        median, mean = np.exp(ratios.mean(axis=0)).tolist()
        rows.append({"way": label, "median": median, "mean": f"{mean:.3g}"})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="errors with bounds chosen privately")
    parser.add_argument("--json", type=Path, help="write all numbers to this file too")
    said = parser.parse_args()
    print(f"# Automatic bounds\n\nMedian (mean) errors in %, {SETS} data sets, {RUNS} draws each.")
    sections: dict[str, list[Row]] = {
        "SUM of 1,000 rows, epsilon 1": compared(0),
        "AVG of 1,000 rows, epsilon 1": compared(1),
        "The rule, by epsilon": rule(),
        "Error of SUM over that of the best fixed bounds, geometric means over settings": scores(),
    }
    for title, rows in sections.items():
        show(title, rows)
    if said.json:
        said.json.write_text(json.dumps({"environment": environment(), **sections}, indent=1))


if __name__ == "__main__":
    main()
