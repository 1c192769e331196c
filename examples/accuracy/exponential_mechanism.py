"""The most frequent of the 16 levels of education, by the exponential mechanism and by permute-and-flip.

python examples/accuracy/exponential_mechanism.py [--out DIR]
"""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from shared import BETTER, LAPLACE, adult, label, panels, run, save, show

from dpsql.accuracy import choice, exponential, permute_and_flip
from dpsql.core.mechanisms import exponential as choosing

EPSILONS = ("1", "0.0002")
WORST = {"exponential": exponential, "permute_and_flip": permute_and_flip}
DRAW = {"exponential": choosing.exponential, "permute_and_flip": choosing.permute_and_flip}


def main(out: Path) -> None:
    """Tables of probabilities, of repeated draws and of bounds; the probabilities as bars. A person more raises one
    count and lowers none, so the counts are monotone utilities, and chances fall by exp(-epsilon) for each person."""
    counts = adult()["education"].value_counts()
    levels, people = list(counts.index), counts.to_numpy()
    laws = {(e, m): choice(people.tolist(), Fraction(e), mechanism=m, monotone=True) for e in EPSILONS for m in WORST}
    table = [[level, f"{count}"] for level, count in counts.items()]
    for law in laws.values():
        for row, chance in zip(table, law.probabilities, strict=True):
            row.append(f"{chance:.4f}")
    show("Chosen with probability", ["", "people", *(f"{m}, {e}" for e, m in laws)], table)

    gaps = np.tile(people.max() - people, (10, 1))
    drawn = {(e, m): Counter(levels[place] for place in DRAW[m](gaps, Fraction(e))) for e, m in laws}
    rows = [[e, m, ", ".join(f"{n} {level}" for level, n in each.most_common())] for (e, m), each in drawn.items()]
    show("Ten draws each (random draws)", ["epsilon", "mechanism", "chosen"], rows)

    rows = []
    for (epsilon, mechanism), law in laws.items():
        worst = WORST[mechanism](len(levels), Fraction(epsilon), monotone=True, counts=True)
        bounds = [f"{each:.0f}" for each in (worst.paper, worst.exact, law.error.exact, law.expected)]
        rows.append([epsilon, mechanism, f"{law.success:.4f}", *bounds])
    head = ["epsilon", "mechanism", "success", "paper", "exact, any data", "exact, these data", "mean"]
    show("How far below the most frequent, beta 0.05", head, rows)
    general, counted = exponential(10, 0.5), exponential(10, 0.5, monotone=True, counts=True)
    three = f"paper {general.paper:.1f}, exact {general.exact:.1f}, exact for counts {counted.exact:.0f}"
    print(f"\nOf 10 candidates, any data, epsilon 0.5: {three}")

    figure, every = panels(2)
    for axes, epsilon in zip(every, EPSILONS, strict=True):
        for side, (mechanism, color) in enumerate({"exponential": LAPLACE, "permute_and_flip": BETTER}.items()):
            places = np.arange(len(levels)) + 0.4 * side - 0.2
            axes.bar(places, laws[epsilon, mechanism].probabilities, 0.4, color=color, label=mechanism)
        axes.set_xticks(range(len(levels)), levels, rotation=90, fontsize=8)
        label(axes, f"epsilon {epsilon}", "education, most frequent first", "probability")
    save(figure, out, "exponential_mechanism.png")


if __name__ == "__main__":
    run(main)
