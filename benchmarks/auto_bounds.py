"""How well private automatic bounds do: errors of SUM and AVG, the choice of bounds included, beside other ways.

python benchmarks/auto_bounds.py [--json FILE] [--few]

--few: only the last table, AVG of few and of many rows by dpsql with nothing declared, next to declared bounds.

The rule: candidate bounds 0 = B_0 < B_1 < ... two to an octave, f(B) the number of rows beyond B, and one draw of
`permute_and_flip` for the score -(f(B) + COST / epsilon_b * s(B)), s(B) the half octaves up to B: a bound is raised by
half an octave if that spares more than COST / epsilon_b rows from clipping. Upper and lower bound are searched for in
the rows above and below 0, which are disjoint, so that each search has all of epsilon_b = SHARE * epsilon: a row added
moves the counts of one search only, by 0 or 1 and all the same way. What is left of epsilon is spent on the answer.

Every error is relative to the true answer (absolute where that is 0), in percent, over SETS data sets with RUNS draws
each. The rule is drawn by the exact sampler, which has no seed; all else is NumPy with fixed seeds. Real numbers are
multiplied by one random factor between 1 and 2 for each data set, so that no grid is lucky. `dpsql` is the engine with
bounds="auto", whose bounds are 2^(k/2) where these are 2^k and 1.5 2^k. `best` are the fixed bounds of least expected
error at that epsilon, `loose` about ten times the largest size; neither is private. SUM has Laplace noise of the larger
bound over epsilon. AVG is made of the sums of y and 1 - y, y the place within the bounds, each with noise 1 / epsilon,
which together cost epsilon (Kulesza, Suresh, Wang, ICML 2024).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from bounds_data import DATA, SEED, SETS, Floats, Ints, Sample, Side, samples
from errors import answers
from measure import Row, environment, show

import dpsql
from dpsql.core.mechanisms.exponential import permute_and_flip

SHARE, COST = 0.3, 0.7
RUNS = 60
SIZES, EPSILONS = (100, 1_000, 100_000), (0.1, 1.0, 3.0)
SCORED = [(n, epsilon) for n in SIZES for epsilon in EPSILONS if n * epsilon >= 100]


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
    return relative(sample, np.array([total, low + width * place]))


def relative(sample: Sample, found: Floats) -> Floats:
    """Errors of answers, SUM and AVG, shape (2, RUNS)."""
    truth = np.array([[sample.total], [sample.total / sample.rows]])
    return np.asarray(np.abs(found - truth) / np.where(truth == 0, 1, np.abs(truth)))


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


def engine(sample: Sample, trial: Trial) -> Floats:
    """dpsql itself."""
    table = dpsql.Table(pd.DataFrame({"x": sample.values}), bounds={"x": "auto"}, nullable={"x": False})
    found = [answers(table, f"SELECT {of}(x) FROM t", RUNS, epsilon=trial.epsilon) for of in ("SUM", "AVG")]
    return relative(sample, np.array(found)[:, :, 0, 0].astype(np.float64))


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


def errors(name: str, rows: int, epsilon: float, answer: Answer, sets: int = SETS) -> Floats:
    """Shape (2, sets * RUNS)."""
    trial = Trial(epsilon, np.random.default_rng([SEED, rows, round(1_000 * epsilon), *name.encode()]))
    return np.concatenate([answer(sample, trial) for sample in samples(name, rows, sets)], axis=1)


def both(off: Floats) -> str:
    """Median and mean in percent."""
    found = 100 * np.array([np.median(off), off.mean()])
    median, mean = (f"{v:.2g}" if v < 99.5 else f"{v:,.0f}" if v < 1e4 else f"{v:.0e}" for v in found.tolist())
    return f"{median} ({mean})"


def compared() -> dict[str, list[Row]]:
    """SUM and AVG of 1,000 rows at epsilon 1 by every way, and by dpsql."""
    ways = {"dpsql": engine, **WAYS}
    found = {name: {way: errors(name, 1_000, 1, answer) for way, answer in ways.items()} for name in DATA}
    return {
        f"{of} of 1,000 rows, epsilon 1": [
            {"data": name} | {way: both(off[place]) for way, off in by_way.items()} for name, by_way in found.items()
        ]
        for place, of in enumerate(("SUM", "AVG"))
    }


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


_FEW: dict[str, tuple[Callable[[np.random.Generator, int], Floats], tuple[float, float]]] = {
    "ages, 18 to 90": (lambda draw, n: draw.integers(18, 91, n).astype(np.float64), (0, 100)),
    "incomes, lognormal(10, 1)": (lambda draw, n: draw.lognormal(10, 1, n), (0, 200_000)),
    "signed, normal(20, 100)": (lambda draw, n: draw.normal(20, 100, n), (-400, 400)),
}
"""Data, and the bounds that somebody who knows their kind would declare."""
_FEW_RUNS = 100


def few() -> list[Row]:
    """Median relative errors of AVG in %, over the runs that gave a number, and how many gave NULL."""
    rows: list[Row] = []
    for (name, (make, bounds)), epsilon, n in product(_FEW.items(), (0.1, 1.0), (50, 200, 1_000, 10_000)):
        draw = np.random.default_rng([SEED, n, *name.encode()])
        found: dict[str, list[float]] = {"chosen": [], "declared": []}
        for _ in range(_FEW_RUNS):
            values = make(draw, n)
            frame = pd.DataFrame({"x": values.astype(np.int64) if name.startswith("ages") else values})
            for way, said in (("chosen", {}), ("declared", {"bounds": {"x": bounds}})):
                average = dpsql.query(frame, "SELECT AVG(x) FROM t", epsilon=epsilon, **said).item()
                if average is not None and not np.isnan(average):
                    found[way].append(100 * abs(average / frame["x"].mean() - 1))
        cells = {way: f"{np.median(off):.2g}" if off else "-" for way, off in found.items()}
        off = sum(each > 50 for each in found["chosen"])
        nulls = f"{_FEW_RUNS - len(found['chosen'])} of {_FEW_RUNS}"
        rows.append({"data": name, "epsilon": epsilon, "rows": n, **cells, "NULL": nulls, "off by half": off})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="errors with bounds chosen privately")
    parser.add_argument("--json", type=Path, help="write all numbers to this file too")
    parser.add_argument("--few", action="store_true", help="only AVG with nothing declared, next to declared bounds")
    said = parser.parse_args()
    if said.few:
        show("AVG with nothing declared, median relative errors in %", few())
        return
    print(f"# Automatic bounds\n\nMedian (mean) errors in %, {SETS} data sets, {RUNS} draws each.")
    sections: dict[str, list[Row]] = {
        **compared(),
        "The rule, by epsilon": rule(),
        "Error of SUM over that of the best fixed bounds, geometric means over settings": scores(),
        "AVG with nothing declared, median relative errors in %": few(),
    }
    for title, rows in sections.items():
        show(title, rows)
    if said.json:
        said.json.write_text(json.dumps({"environment": environment(), **sections}, indent=1))


if __name__ == "__main__":
    main()
