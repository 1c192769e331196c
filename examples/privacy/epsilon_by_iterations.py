"""Epsilon against the number of iterations: the same Gaussian steps, added up in eight ways.

python examples/privacy/epsilon_by_iterations.py [--out DIR]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from lesson import label, panels, run, save, show

from dpsql import accounting
from dpsql.accounting import Gaussian

SIGMA, DELTA = 200, 1e-5
SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

Steps = Sequence[Gaussian]
ACCOUNTANTS: dict[str, tuple[Callable[[Steps], float], str, str]] = {
    "basic": (lambda steps: accounting.basic(steps, DELTA), "black", ":"),
    "advanced": (lambda steps: accounting.advanced(steps, DELTA), "tab:red", "-"),
    "RDP, alpha 20": (lambda steps: accounting.rdp_at(steps, DELTA, 20, conversion="classic"), "tab:pink", "--"),
    "RDP, alpha 60": (lambda steps: accounting.rdp_at(steps, DELTA, 60, conversion="classic"), "tab:purple", "--"),
    "zCDP, classic": (lambda steps: accounting.zcdp_classic(steps, DELTA), "tab:orange", "-"),
    "RDP, best alpha": (lambda steps: accounting.rdp(steps, DELTA), "tab:brown", "-"),
    "zCDP, tight": (lambda steps: accounting.zcdp(steps, DELTA), "tab:blue", "--"),
    "PLD": (lambda steps: accounting.pld(steps, DELTA), "tab:green", "-"),
}


def steps(k: int) -> Steps:
    """k answers with Gaussian noise; one person moves each by at most 1."""
    return [Gaussian(SIGMA, sensitivity=1, count=k)]


def classic_rdp(k: int, alpha: float) -> float:
    """k alpha / (2 sigma^2) + ln(1/delta) / (alpha - 1), written out."""
    return k * alpha / (2 * SIGMA**2) + float(np.log(1 / DELTA)) / (alpha - 1)


def best_classic_alpha(k: int) -> float:
    """The order that makes it least: 1 + sqrt(2 sigma^2 ln(1/delta) / k), where the two terms' slopes are equal."""
    return 1 + float(np.sqrt(2 * SIGMA**2 * np.log(1 / DELTA) / k))


def main(out: Path) -> None:
    """The table of all accountants, the best order, and the plot."""
    found = {name: [epsilon(steps(k)) for k in SIZES] for name, (epsilon, _, _) in ACCOUNTANTS.items()}
    shown, best = [1, 10, 100, 1000], best_classic_alpha(100)
    show(
        f"Epsilon of k Gaussian steps, sigma {SIGMA}, sensitivity 1, delta {DELTA:g}",
        ["accountant", *(f"k = {k}" for k in shown)],
        [[name, *(f"{line[SIZES.index(k)]:.4f}" for k in shown)] for name, line in found.items()],
    )
    show(
        "RDP with the classic conversion, by the order alpha, k = 100",
        ["alpha", "epsilon"],
        [
            [f"{alpha:.0f}" + " (the best)" * (alpha == best), f"{classic_rdp(100, alpha):.4f}"]
            for alpha in (2, 20, 60, best, 200, 1000)
        ],
    )

    figure, (left, right) = panels(2)
    for name, (_, color, style) in ACCOUNTANTS.items():
        left.plot(SIZES, found[name], color=color, linestyle=style, label=name)
    left.set(xscale="log", yscale="log", ylim=(0.005, 20))
    label(left, f"Total epsilon, sigma {SIGMA}, delta {DELTA:g}", "k (iterations)", "epsilon", "upper left")
    left.legend(fontsize=8, ncols=2, loc="upper left")
    orders = np.logspace(np.log10(5), 3, 200)
    for k, color in ((10, "tab:blue"), (100, "tab:orange"), (1000, "tab:green")):
        right.plot(orders, [classic_rdp(k, alpha) for alpha in orders], color=color, label=f"k = {k}")
        right.plot(best_classic_alpha(k), classic_rdp(k, best_classic_alpha(k)), "o", color=color, markersize=5)
    right.set(xscale="log", yscale="log")
    label(right, "RDP, classic conversion; dots: the best alpha", "alpha (order)", "epsilon")
    save(figure, out, "epsilon_by_iterations.png")


if __name__ == "__main__":
    run(main)
