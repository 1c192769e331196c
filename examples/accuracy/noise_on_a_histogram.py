"""Laplace noise on a histogram: the 16 levels of education in Adult, at three epsilons.

python examples/accuracy/noise_on_a_histogram.py [--out DIR]
"""

from pathlib import Path

import numpy as np
from shared import LAPLACE, PLAIN, adult, label, panels, run, save, show

import dpsql
from dpsql.accuracy import laplace

EPSILONS = (1, 0.1, 0.01)
SQL = "SELECT education, COUNT(*) AS n FROM adult GROUP BY education"


def main(out: Path) -> None:
    """A table and a plot of noisy counts beside the exact ones, and how far noise reaches."""
    people = adult()
    exact = people["education"].value_counts()
    levels = list(exact.index)  # known from the census codebook; the order, by size, is for the plot
    noisy = {
        epsilon: dpsql.query(people, SQL, epsilon=epsilon, keys={"education": levels}).df.set_index("education")["n"]
        for epsilon in EPSILONS
    }
    rows = [[level, f"{exact[level]}", *(f"{noisy[epsilon][level]}" for epsilon in EPSILONS)] for level in levels]
    show("People by education (random draws)", ["", "exact", *(f"epsilon {each}" for each in EPSILONS)], rows)

    rows = []
    for epsilon in EPSILONS:
        one, all_of_them = (laplace(epsilon=epsilon, k=k, discrete=True).exact for k in (1, len(levels)))
        rows.append([f"{epsilon}", f"{one:.0f}", f"{all_of_them:.0f}", f"{int((exact <= all_of_them).sum())}"])
    show("With probability .95", ["epsilon", "a count is within", "all 16 are within", "levels no larger"], rows)

    figure, every = panels(3)
    for axes, epsilon in zip(every, EPSILONS, strict=True):
        reach = laplace(epsilon=epsilon, k=len(levels), discrete=True).exact
        places = np.arange(len(levels))
        axes.bar(places, noisy[epsilon][levels], color=LAPLACE, label="noisy")
        axes.errorbar(places, exact, yerr=reach, fmt=".", color=PLAIN, label=f"exact, ±{reach:.0f}")
        axes.set_xticks(places, levels, rotation=90, fontsize=8)
        axes.set_yscale("symlog", linthresh=100)
        axes.set_ylim(-1000, 20_000)
        label(axes, f"epsilon {epsilon}", "education", "people (logarithmic beyond 100)")
    save(figure, out, "noise_on_a_histogram.png")


if __name__ == "__main__":
    run(main)
