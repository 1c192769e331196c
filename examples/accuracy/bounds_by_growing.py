"""Growing the upper bound of a sum until the answer no longer changes: not private; and a private way.

python examples/accuracy/bounds_by_growing.py [--out DIR]
"""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from shared import BETTER, LAPLACE, WORSE, adult, label, panels, run, save, show

from dpsql.privacy.sparse_vector import first_below

BOUNDS = np.arange(5, 151, 5)  # years; fixed without a look at the data
FOR_BOUND, FOR_SUM, DRAWS = Fraction(1, 5), Fraction(4, 5), 20


def sums(ages: np.ndarray) -> np.ndarray:
    """The sum clipped to [0, bound], for each bound."""
    return np.minimum(ages[:, np.newaxis], BOUNDS).sum(axis=0)


def grown(ages: np.ndarray) -> int:
    """The first bound from which on the sum stays as it is. Not private."""
    return int(BOUNDS[np.argmax(sums(ages) == sums(ages)[-1])])


def chosen(above: np.ndarray) -> int:
    """The first bound with seemingly nobody above it, else the last; FOR_BOUND-DP by the sparse vector technique. One
    person more adds 1 to some of the numbers `above` the bounds, and takes from none."""
    place = first_below(above, 0, FOR_BOUND, sensitivity=1, monotone=True)
    return int(BOUNDS[min(place, len(BOUNDS) - 1)])


def main(out: Path) -> None:
    """What growing tells about one person, the private choice twenty times over, and a plot of what both look at."""
    ages = adult()["age"].to_numpy()[:1000]
    print(f"Growing stops at {grown(ages)}; without one of the {len(ages)} people at {grown(ages[ages < ages.max()])}.")
    above = (ages[:, np.newaxis] > BOUNDS).sum(axis=0)
    picked, rows = Counter(chosen(above) for _ in range(DRAWS)), []
    for bound, beyond, lost in zip(BOUNDS, above, ages.sum() - sums(ages), strict=True):
        noise = math.sqrt(2) * bound / FOR_SUM
        errors = [f"{each:.0f}" for each in (lost, noise, math.hypot(lost, noise))]
        rows.append([f"{bound}", f"{beyond}", *errors, f"{picked[bound]}"])
    head = ["bound", "people above", "lost by clipping", "noise", "both", f"of {DRAWS} choices (random draws)"]
    show(f"Private choice at epsilon {float(FOR_BOUND)}, SUM(age) at epsilon {float(FOR_SUM)}", head, rows[9:22])

    figure, (left, right) = panels(2)
    left.plot(BOUNDS, sums(ages), "o-", color=LAPLACE, markersize=4)
    left.axvline(grown(ages), color=WORSE, linestyle="--", label=f"no change after {grown(ages)} (not private)")
    label(left, "The sum while the bound grows", "upper bound (years)", "clipped SUM(age) (years)")
    right.bar(list(picked), list(picked.values()), 4, color=BETTER)
    right.set_xlim(left.get_xlim())
    label(right, f"Private choices, {DRAWS} random draws", "upper bound (years)", "chosen (times)")
    save(figure, out, "bounds_by_growing.png")


if __name__ == "__main__":
    run(main)
