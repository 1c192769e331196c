"""The largest of k noises: the paper's bound, the exact one, and what is drawn.

python examples/accuracy/largest_noise.py [--out DIR]
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
from shared import BETTER, LAPLACE, WORSE, label, panels, run, save, show

from dpsql.accuracy import gaussian, laplace
from dpsql.core.mechanisms.samplers import discrete_laplace

SCALE, SIZES, RUNS = 100, (16, 1024), 2000  # the scale of a count at epsilon 0.01


def largest(k: int) -> np.ndarray:
    """The largest size among k exact noises, RUNS times."""
    return np.abs(discrete_laplace(Fraction(SCALE), RUNS * k).reshape(RUNS, k)).max(axis=1)


def main(out: Path) -> None:
    """Tables of both bounds for both laws, and the largest of k drawn noises beside them."""
    for name, law in {"Laplace": laplace, "Gaussian": gaussian}.items():
        rows = []
        for k in (1, *SIZES):
            for beta in (0.5, 0.05, 0.001):
                bound = law(SCALE, k=k, beta=beta)
                loose = f"{100 * (bound.paper / bound.exact - 1):.1f} %"
                rows.append([f"{k}", f"{beta}", f"{bound.paper:.1f}", f"{bound.exact:.1f}", loose])
        show(f"{name}, scale {SCALE}: none of k beyond", ["k", "beta", "paper", "exact", "paper is larger by"], rows)

    drawn = {k: largest(k) for k in SIZES}
    rows = []
    for k in SIZES:
        bound = laplace(SCALE, k=k, discrete=True)
        shares = [f"{(drawn[k] > each).mean():.4f}" for each in (bound.paper, bound.exact)]
        rows.append([f"{k}", f"{np.median(drawn[k]):.0f}", *shares])
    head = ["k", "median of the largest", "beyond the paper's bound", "beyond the exact one"]
    show(f"{RUNS} draws of k discrete Laplace noises, beta 0.05 (random draws)", head, rows)

    figure, every = panels(2)
    for axes, k in zip(every, SIZES, strict=True):
        bound, x = laplace(SCALE, k=k), np.linspace(0, 1800, 400)
        axes.hist(drawn[k], np.arange(0, 1801, 25), density=True, color=LAPLACE, alpha=0.45, label="drawn")
        law = k / SCALE * np.exp(-x / SCALE) * (1 - np.exp(-x / SCALE)) ** (k - 1)
        axes.plot(x, law, color=LAPLACE, label="density")
        axes.axvline(bound.exact, color=BETTER, linewidth=3, label=f"beta 0.05, exact: {bound.exact:.0f}")
        axes.axvline(bound.paper, color=WORSE, linestyle="--", label=f"beta 0.05, paper: {bound.paper:.0f}")
        label(axes, f"The largest of {k} Laplace noises, scale {SCALE}", "largest size (rows)", "density")
    save(figure, out, "largest_noise.png")


if __name__ == "__main__":
    run(main)
