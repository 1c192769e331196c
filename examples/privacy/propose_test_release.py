"""Propose-test-release for an average: noise by local sensitivity, or no answer at all.

Neighbours are unbounded: one row is added or removed, and the number of rows is private. The randomness here is
NumPy's floating-point noise, for teaching; the engine draws exact noise and has no such mechanism.

python examples/privacy/propose_test_release.py [--out DIR]
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from lesson import BETTER, GAUSSIAN, LAPLACE, PLAIN, adult, label, panels, run, save, show

import dpsql

LOW, HIGH = 17.0, 90.0
EPSILON, DELTA = 0.5, 1e-6  # of each of the two steps: the whole is (2 epsilon, delta) = (1, 1e-6)
FAILURE = 1e-3
MEANT_FOR = 1000
PROPOSED = (HIGH - LOW) / MEANT_FOR  # no table of so many rows or more has a larger local sensitivity
SEED = 9


def average(values: np.ndarray, low: float = LOW, high: float = HIGH) -> float:
    """The average; the middle of the range where there is no row."""
    return float(values.mean()) if len(values) else (low + high) / 2


def local_sensitivity(values: np.ndarray, low: float = LOW, high: float = HIGH) -> float:
    """The most that one row, added or removed, changes the average of this very table."""
    n, mean = len(values), average(values, low, high)
    if n == 0:
        return (high - low) / 2
    adding = max(mean - low, high - mean) / (n + 1)
    removing = max(mean - values.min(), values.max() - mean) / (n - 1) if n > 1 else 0.0  # n = 1: adding moves more
    return float(max(adding, removing))


def after_removing(values: np.ndarray, low: float = LOW, high: float = HIGH) -> np.ndarray:
    """For k = 0 .. n: the largest local sensitivity after k rows are removed. It never falls with k."""
    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    rows = np.arange(n, 0, -1)  # left after k = 0 .. n - 1 removals
    lowest = np.concatenate([[0.0], np.cumsum(ordered)])  # sum of the i smallest
    highest = np.concatenate([[0.0], np.cumsum(ordered[::-1])])
    adding = np.maximum(highest[rows] / rows - low, high - lowest[rows] / rows) / (rows + 1)
    others = np.maximum(rows - 1, 1)  # a last row is kept to be removed next: the smallest, or the largest
    up = highest[others] / others - ordered[:1]
    down = ordered[-1:] - lowest[others] / others
    removing = np.where(rows > 1, np.maximum(up, down) / rows, 0.0)
    return np.append(np.maximum(adding, removing), (high - low) / 2)


def distance(values: np.ndarray, bound: float, low: float = LOW, high: float = HIGH) -> float:
    """How many rows must be added or removed until the local sensitivity exceeds the bound."""
    exceeds = after_removing(values, low, high) > bound
    return float(np.argmax(exceeds)) if exceeds.any() else math.inf


def threshold(epsilon: float, delta: float) -> float:
    """How far away a table must seem: ln(1/delta)/epsilon."""
    return math.log(1 / delta) / epsilon


def refusal(steps: float, epsilon: float = EPSILON, delta: float = DELTA) -> float:
    """The exact probability of no answer, for a table at this distance: P(steps + Laplace(1/epsilon) <= threshold)."""
    over = epsilon * (steps - threshold(epsilon, delta))
    return math.exp(-over) / 2 if over >= 0 else 1 - math.exp(over) / 2


def propose_test_release(values: np.ndarray, bound: float, draw: np.random.Generator) -> float | None:
    """The average with noise for the proposed bound, or None where the test fails; (2 epsilon, delta)-DP."""
    if distance(values, bound) + draw.laplace(scale=1 / EPSILON) <= threshold(EPSILON, DELTA):
        return None
    return average(values) + draw.laplace(scale=bound / EPSILON)


def safe_distance(failure: float = FAILURE) -> int:
    """The least distance at which an answer is refused with at most this probability."""
    return math.ceil(threshold(EPSILON, DELTA) + math.log(1 / (2 * failure)) / EPSILON)


def half_width(bound: float, miss: float = 0.05) -> float:
    """How far the released average is off in at most this share of draws."""
    return bound / EPSILON * math.log(1 / miss)


def engine_half_width(ages: np.ndarray) -> float:
    """The same of dpsql's AVG at epsilon 1 and delta 0, the same total epsilon; it depends on the draw a little."""
    people = dpsql.declare(pd.DataFrame({"age": ages}), bounds={"age": (LOW, HIGH)})
    answer = dpsql.query(people, "SELECT AVG(age) AS a FROM people", epsilon=2 * EPSILON)
    found = answer.intervals().iloc[0]
    return float(found["a_high"] - found["a_low"]) / 2


def show_refusals(ages: np.ndarray, steps: dict[int, float]) -> None:
    """How often the first n rows get no answer: the exact probability beside trials; and from which n on it is safe."""
    draw, safe = np.random.default_rng(SEED), safe_distance()
    rows = []
    for n in (700, 720, 740, 750, 760, 780, 800):
        share = np.mean([propose_test_release(ages[:n], PROPOSED, draw) is None for _ in range(300)])
        chance = f"{refusal(steps[n]):.6f}"
        rows.append([f"{n}", f"{local_sensitivity(ages[:n]):.4f}", f"{steps[n]:g}", chance, f"{share:.2f}"])
    head = ["rows", "local sensitivity", "distance", "refusal, exact", "of 300 random draws"]
    show(f"Proposed bound {PROPOSED:.3f} years, threshold {threshold(EPSILON, DELTA):.2f}", head, rows)
    passes = min(n for n in steps if all(steps[m] >= safe for m in steps if m >= n))
    print(
        f"\nRefused with probability at most {FAILURE:g} from distance {safe} on: Adult's first {passes} rows and more,"
    )
    print(f"and every table of {MEANT_FOR + safe - 1} rows and more.")


def best_bound(ages: np.ndarray) -> float:
    """The least bound that these rows pass with the stated failure probability. Knowing it is not private."""
    return float(after_removing(ages)[safe_distance() - 1])


def show_errors(ages: np.ndarray) -> None:
    """The noise of three proposals beside that of dpsql, at the same total epsilon."""
    bounds = {
        f"PTR, proposed for {MEANT_FOR} rows": PROPOSED,
        f"PTR, proposed for {10 * MEANT_FOR} rows": PROPOSED / 10,
        "PTR, best bound (not private)": best_bound(ages),
    }
    show(
        f"AVG(age) of all {len(ages)} rows at total epsilon {2 * EPSILON:g}",
        ["", "bound (years)", "noise, 19 of 20 within (years)"],
        [
            *([name, f"{bound:.5f}", f"{half_width(bound):.5f}"] for name, bound in bounds.items()),
            ["dpsql, no delta (random draw)", "", f"{engine_half_width(ages):.4f}"],
        ],
    )


def main(out: Path) -> None:
    """The chance of a refusal, the error beside dpsql's, and both as a plot. The tables are Adult's first n rows."""
    ages = adult()["age"].to_numpy(dtype=float)
    steps = {n: distance(ages[:n], PROPOSED) for n in range(400, 1101)}
    show_refusals(ages, steps)
    show_errors(ages)

    figure, (left, right) = panels(2)
    worst = [refusal(max(0, n - MEANT_FOR + 1)) for n in steps]
    left.plot(list(steps), [refusal(each) for each in steps.values()], color=LAPLACE, label="Adult's first n rows")
    left.plot(list(steps), worst, color=PLAIN, linestyle="--", label="at most, any n rows")
    label(left, f"Chance of no answer, bound {PROPOSED:.3f} years", "n (rows)", "probability of refusal", "center left")

    tables = [ages[:n] for n in (200, 500, 1000, 2000, 5000, 10_000, 20_000, len(ages))]
    sizes = [len(each) for each in tables]
    passing = [len(each) for each in tables if distance(each, PROPOSED) >= safe_distance()]
    proposed, best = [half_width(PROPOSED)] * len(passing), [half_width(best_bound(each)) for each in tables]
    right.plot(passing, proposed, "o-", color=GAUSSIAN, label=f"PTR, proposed for {MEANT_FOR} rows")
    right.plot(sizes, best, "s--", color=PLAIN, label="PTR, best bound (not private)")
    right.plot(sizes, [engine_half_width(each) for each in tables], "^-", color=BETTER, label="dpsql (random draws)")
    right.set(xscale="log", yscale="log")
    label(right, f"Noise of AVG(age) at total epsilon {2 * EPSILON:g}", "n (rows)", "19 of 20 within (years)")
    save(figure, out, "propose_test_release.png")


if __name__ == "__main__":
    run(main)
