"""Clipping: a low upper bound loses what lies above it, a high one needs more noise. SUM(age) of 1,000 people.

python examples/accuracy/clipping.py [--out DIR]
"""

import math
from pathlib import Path

import numpy as np
from shared import BETTER, LAPLACE, PLAIN, WORSE, adult, label, panels, run, save, show

import dpsql

EPSILON, ANSWERS, SQL = 1, 100, "SELECT SUM(age) AS s FROM people"


def errors(ages: np.ndarray, upper: float) -> tuple[float, float, float]:
    """What clipping to [0, upper] takes from the sum; the standard deviation of Laplace noise; both, as a root mean
    square."""
    lost, noise = float(np.maximum(ages - upper, 0).sum()), math.sqrt(2) * upper / EPSILON
    return lost, noise, math.hypot(lost, noise)


def main(out: Path) -> None:
    """A refusal, a table of upper bounds, and both errors as lines."""
    people = adult()[:1000]
    ages = people["age"].to_numpy(dtype=float)
    try:
        dpsql.query(people, SQL, epsilon=EPSILON, auto_bounds=False)
    except dpsql.errors.MissingBounds as refused:
        print(refused)

    rows = []
    for upper in (20, 40, 60, 70, 80, 90, 120, 200, 1000):
        asked = [dpsql.query(people, SQL, epsilon=EPSILON, bounds={"age": (0, upper)}).item() for _ in range(ANSWERS)]
        real = math.sqrt(np.square(np.array(asked) - ages.sum()).mean())
        rows.append([f"{upper}", *(f"{each:.1f}" for each in errors(ages, upper)), f"{real:.0f}"])
    head = ["upper bound", "lost by clipping", "noise", "both", f"of {ANSWERS} answers (random draws)"]
    show(f"Error of SUM(age) of {len(ages)} people, exactly {ages.sum():.0f} years", head, rows)
    uppers = np.arange(15, 151)
    lost, noise, both = np.transpose([errors(ages, upper) for upper in uppers])
    best = uppers[both.argmin()]
    print(f"\nThe best bound is {best}: {np.count_nonzero(ages > best)} people are clipped. To know it is not private.")

    figure, (left, right) = panels(2)
    left.hist(ages, np.arange(15, 95, 1), color=LAPLACE)
    left.axvline(best, color=PLAIN, linestyle="--", label=f"the best upper bound, {best}")
    label(left, "The ages (to look at them is not private)", "age (years)", "people")
    right.semilogy(uppers, np.where(lost > 0, lost, np.nan), color=WORSE, label="lost by clipping")
    right.semilogy(uppers, noise, color=LAPLACE, label="noise (standard deviation)")
    right.semilogy(uppers, both, color=BETTER, label="both (root mean square)")
    right.axvline(best, color=PLAIN, linestyle="--")
    label(right, f"Error of SUM(age) at epsilon {EPSILON}", "upper bound (years)", "error (years)")
    save(figure, out, "clipping.png")


if __name__ == "__main__":
    run(main)
