"""k Laplace queries under advanced composition against one Gaussian vector query, at the same (epsilon, delta).

python examples/privacy/advanced_composition.py [--out DIR]
"""

from __future__ import annotations

import math
from pathlib import Path

from lesson import BETTER, GAUSSIAN, LAPLACE, PLAIN, WORSE, crossing, label, panels, run, save, show

from dpsql import accounting
from dpsql.accounting import Concentrated, Laplace, Pure

EPSILON, DELTA = 1.0, 1e-5
SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def basic_scale(k: int) -> float:
    """The scale of each of k Laplace answers when epsilons add up: epsilon / k each."""
    return k / EPSILON


def advanced_scale(k: int) -> float:
    """The least scale at which k answers cost at most (epsilon, delta) by advanced composition alone."""
    return crossing(lambda b: accounting.advanced([Pure(1 / b, count=k)], DELTA) - EPSILON, 0.5, 20 * k)


def exact_scale(k: int) -> float:
    """The least scale by the privacy loss distribution: what k Laplace answers really cost."""
    root = math.sqrt(k)
    return crossing(lambda b: accounting.pld([Laplace(b, count=k)], DELTA) - EPSILON, 0.5 * root, 5 * root, halvings=16)


def zcdp_sigma(k: int) -> float:
    """The noise of one Gaussian vector query, L2 sensitivity sqrt(k), by the tight conversion of zCDP."""
    return crossing(lambda s: accounting.zcdp([Concentrated(k / (2 * s**2))], DELTA) - EPSILON, 0.5, 10 * k)


def tight_sigma(k: int) -> float:
    """The same by the exact curve of the continuous Gaussian."""
    return crossing(lambda s: accounting.gaussian_delta(s, EPSILON, math.sqrt(k)) - DELTA, 0.5, 10 * k)


def main(out: Path) -> None:
    """A table of noise against k, where the lines cross, and the plot."""
    root = math.sqrt(2)  # a Laplace law's standard deviation is sqrt(2) scales
    lines = {
        "basic": [root * basic_scale(k) for k in SIZES],
        "advanced": [root * advanced_scale(k) for k in SIZES],
        "Gaussian, zCDP": [zcdp_sigma(k) for k in SIZES],
        "Gaussian, tight": [tight_sigma(k) for k in SIZES],
    }
    show(
        f"Standard deviation of each of k answers, epsilon {EPSILON:g}, delta {DELTA:g} in total",
        ["k", *lines],
        [[f"{k}", *(f"{line[i]:.2f}" for line in lines.values())] for i, k in enumerate(SIZES)],
    )
    advanced = next(k for k in range(2, 200) if advanced_scale(k) < basic_scale(k))
    zcdp = next(k for k in range(2, 200) if zcdp_sigma(k) < root * basic_scale(k))
    tight = next(k for k in range(2, 200) if tight_sigma(k) < root * basic_scale(k))
    print(f"\nAdvanced composition needs less noise than basic from k = {advanced} on.")
    print(f"The Gaussian vector needs less than Laplace by basic from k = {zcdp} on (zCDP), {tight} on (tight).")
    times = [lines["advanced"][i] / lines["Gaussian, zCDP"][i] for i in range(len(SIZES))]
    print(f"Laplace by advanced has {min(times):.2f} times the Gaussian's noise or more: these two never cross.")

    few = SIZES[::2]
    spent = [root * exact_scale(k) for k in few]
    show(
        "Laplace by its privacy loss distribution, against the tight Gaussian",
        ["k", "Laplace, PLD", "Gaussian, tight", "ratio"],
        [
            [f"{k}", f"{laplace:.2f}", f"{tight_sigma(k):.2f}", f"{laplace / tight_sigma(k):.2f}"]
            for k, laplace in zip(few, spent, strict=True)
        ],
    )

    figure, (axes,) = panels()
    axes.plot(SIZES, lines["basic"], color=PLAIN, label="k Laplace queries, basic composition")
    axes.plot(SIZES, lines["advanced"], color=WORSE, label="k Laplace queries, advanced composition")
    axes.plot(few, spent, "o:", color=LAPLACE, markersize=4, label="k Laplace queries, what they cost (PLD)")
    axes.plot(SIZES, lines["Gaussian, zCDP"], color=GAUSSIAN, label="one Gaussian vector query, zCDP (dpsql)")
    axes.plot(SIZES, lines["Gaussian, tight"], color=BETTER, linestyle="--", label="one Gaussian vector query, tight")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    title = f"Noise of each of k counts, total epsilon {EPSILON:g}, delta {DELTA:g}"
    label(axes, title, "k (counts)", "standard deviation (rows)")
    save(figure, out, "advanced_composition.png")


if __name__ == "__main__":
    run(main)
