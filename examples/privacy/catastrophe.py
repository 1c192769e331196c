"""The catastrophe mechanism: it publishes everything with probability delta, and delta differential privacy allows it.

A WARNING IN CODE. Never use it. It lives in this lesson only and draws with NumPy's floating-point generator; the
engine has nothing like it. What it teaches: choose delta far below one in the number of people.

python examples/privacy/catastrophe.py [--out DIR]
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TypeVar

import numpy as np
from lesson import BETTER, GAUSSIAN, PLAIN, WORSE, adult, label, panels, run, save, show

Answer = TypeVar("Answer")
SEED = 20


def catastrophe(answer: Answer, delta: float, draw: np.random.Generator) -> Answer | None:
    """The exact answer with probability delta, else nothing: (0, delta)-differentially private, for any answer."""
    return answer if draw.random() < delta else None


def name_and_shame(rows: int, delta: float, draw: np.random.Generator) -> np.ndarray:
    """The same person by person: each row is published with probability delta. Returns the numbers of those rows.

    One person's row changes one of the independent coins' answers, so this is (0, delta)-differentially private too.
    """
    return np.flatnonzero(draw.random(rows) < delta)


def anyone(people: float, delta: float) -> float:
    """The chance that name_and_shame publishes somebody: 1 - (1 - delta)^people."""
    return -math.expm1(people * math.log1p(-delta))


def main(out: Path) -> None:
    """A table of what each delta means for Adult, trials of both mechanisms, and a plot."""
    people, draw = adult(), np.random.default_rng(SEED)
    n = len(people)

    deltas = [1e-2, 1 / n, 1e-5, 1e-6, 1e-9]
    show(
        f"What delta allows for {n} people",
        ["delta", "people published, on average (n delta)", "chance that somebody is"],
        [[f"{delta:.2g}", f"{n * delta:.4g}", f"{anyone(n, delta):.4g}"] for delta in deltas],
    )

    trials = 20_000
    published = sum(catastrophe(people, 0.01, draw) is not None for _ in range(trials))
    shamed = [len(name_and_shame(n, 1 / n, draw)) for _ in range(1000)]
    show(
        f"Trials (random draws of NumPy with seed {SEED})",
        ["", "delta", "trials", "with a victim", "share", "expected"],
        [
            ["catastrophe", "0.01", f"{trials}", f"{published}", f"{published / trials:.4f}", "0.0100"],
            [
                "name and shame",
                "1/n",
                "1000",
                f"{np.count_nonzero(shamed)}",
                f"{np.count_nonzero(shamed) / 1000:.4f}",
                f"{anyone(n, 1 / n):.4f}",
            ],
        ],
    )

    figure, (axes,) = panels()
    sizes = np.logspace(0, 9, 200)
    for delta, color in zip((1e-3, 1e-5, 1e-6, 1e-9), (WORSE, GAUSSIAN, PLAIN, BETTER), strict=True):
        axes.plot(sizes, [anyone(size, delta) for size in sizes], color=color, label=f"delta {delta:g}")
        axes.plot(1 / delta, anyone(1 / delta, delta), "o", color=color, markersize=5)
    axes.axvline(n, color="black", linewidth=0.8, linestyle="--")
    axes.annotate(f"Adult, n = {n}", (n, 0.6), xytext=(-14, 0), textcoords="offset points", rotation=90, fontsize=9)
    axes.set_xscale("log")
    title = "Chance that a mechanism that “keeps” (0, delta) publishes somebody; dots: n = 1/delta"
    label(axes, title, "n (people)", "probability")
    axes.title.set_fontsize(10)
    save(figure, out, "catastrophe.png")


if __name__ == "__main__":
    run(main)
