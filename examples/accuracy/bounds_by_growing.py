"""Growing the upper bound of a sum until the answer no longer changes: not private; and dpsql's private way.

python examples/accuracy/bounds_by_growing.py [--out DIR]
"""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from shared import BETTER, LAPLACE, WORSE, adult, label, panels, run, save, show

import dpsql

EPSILON, DRAWS = 1, 20
STEPS, HALF_OCTAVES = np.arange(5, 151, 5), np.array([22, 32, 45, 64, 90, 128, 181, 256, 362])  # years


def sums(ages: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The sum clipped to [0, bound], for each bound."""
    return np.minimum(ages[:, np.newaxis], bounds).sum(axis=0)


def grown(ages: np.ndarray) -> int:
    """The first bound from which on the sum stays as it is. Not private."""
    found = sums(ages, STEPS)
    return int(STEPS[np.argmax(found == found[-1])])


def chosen(people: pd.DataFrame) -> int:
    """The upper bound that dpsql chooses for SUM(age) of these people."""
    answer = dpsql.query(people, "SELECT SUM(age) AS s FROM people", epsilon=EPSILON, bounds={"age": "auto"})
    return answer.explanation.to_dict()["bounds"][0]["chosen"][1]


def main(out: Path) -> None:
    """What growing tells about one person, the private choice twenty times over, and a plot of both."""
    people = adult()[:1000]
    ages = people["age"].to_numpy()
    print(f"Growing stops at {grown(ages)}; without one of the {len(ages)} people at {grown(ages[ages < ages.max()])}.")
    picked, rows = Counter(chosen(people) for _ in range(DRAWS)), []
    for bound, clipped in zip(HALF_OCTAVES, sums(ages, HALF_OCTAVES), strict=True):
        lost, noise = ages.sum() - clipped, math.sqrt(2) * bound / (EPSILON * 0.7)  # the rest is for the bound
        errors = [f"{each:.0f}" for each in (lost, noise, math.hypot(lost, noise))]
        rows.append([f"{bound}", f"{(ages > bound).sum()}", *errors, f"{picked[bound]}"])
    head = ["bound", "people above", "lost by clipping", "noise", "both", f"of {DRAWS} choices (random draws)"]
    show(f"Bounds that dpsql chooses from, and errors of SUM(age) at epsilon {EPSILON}, choice included", head, rows)

    figure, (left, right) = panels(2)
    left.plot(STEPS, sums(ages, STEPS), "o-", color=LAPLACE, markersize=4)
    left.axvline(grown(ages), color=WORSE, linestyle="--", label=f"no change after {grown(ages)} (not private)")
    label(left, "The sum while the bound grows", "upper bound (years)", "clipped SUM(age) (years)")
    right.bar([f"{bound}" for bound in HALF_OCTAVES], [picked[bound] for bound in HALF_OCTAVES], color=BETTER)
    label(right, f"Private choices, {DRAWS} random draws", "upper bound (years)", "chosen (times)")
    save(figure, out, "bounds_by_growing.png")


if __name__ == "__main__":
    run(main)
