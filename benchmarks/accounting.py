"""How fast totals are worked out, beside dp-accounting's distribution of the privacy loss in the same run.

python benchmarks/accounting.py [--entries 1000] [--repeats 5]

Times are medians of interleaved runs; compare the two of one line, not lines of different runs. `excess` is how far
epsilon lies above a lower bound of the truth: dp-accounting's own, rounded down on a grid ten times as fine. Needs
dp-accounting.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dp_accounting.pld import privacy_loss_distribution as other
from measure import Row, show, side_by_side

from dpsql import accounting
from dpsql.accounting import Event, Gaussian, Laplace, Pure

DELTA = 1e-5
STEP = 1e-3
"""Width of the other library's grid; its default of 1e-4 takes ten times as long."""


def ledgers(entries: int) -> dict[str, list[Event]]:
    """Ledgers by name, most of them of as many unequal entries."""
    makers: tuple[Callable[[int], Event], ...] = (
        lambda i: Laplace(20 + Fraction(i, 100)),
        lambda i: Gaussian(50 + Fraction(i, 10)),
        lambda i: Pure(Fraction(1, 100) + Fraction(i, 10**5)),
    )
    return {
        "unequal, mixed": [makers[i % 3](i) for i in range(entries)],
        "unequal Laplace": [makers[0](i) for i in range(entries)],
        "unequal Gaussian": [makers[1](i) for i in range(entries)],
        "equal Laplace": [Laplace(20, count=entries)],
        "100,000 equal Laplace": [Laplace(1000, count=10**5)],
        "one Laplace, one Gaussian": [Laplace(1), Gaussian(1)],
    }


def composed(events: Sequence[Event], step: float = STEP, *, lower: bool = False) -> float:
    """The total epsilon by dp-accounting: above the truth, or below it."""
    found = None
    for event in events:
        match event:
            case Laplace():
                one = other.from_laplace_mechanism(
                    float(1 / event.epsilon), 1, not lower, step, use_connect_dots=not lower
                )
            case Gaussian():
                one = other.from_gaussian_mechanism(float(event.sigma), 1, not lower, step, use_connect_dots=not lower)
            case Pure():
                one = other.from_randomized_response(2 / (1 + math.exp(event.epsilon)), 2, not lower, step)
            case _:
                raise TypeError(event)
        one = one.self_compose(event.count) if event.count > 1 else one
        found = one if found is None else found.compose(one)
    return 0.0 if found is None else found.get_epsilon_for_delta(DELTA)


def row(name: str, events: list[Event], repeats: int) -> Row:
    """One ledger: every accountant here and the distribution alone, beside the distribution there."""
    ms = side_by_side(
        repeats,
        theirs=lambda: composed(events),
        compare=lambda: accounting.compare(events, DELTA),
        pld=lambda: accounting.pld(events, DELTA),
    )
    epsilon = accounting.pld(events, DELTA)
    truth = composed(events, STEP / 10, lower=True) if len(events) <= 2 and events[0].count <= 1000 else math.nan
    return {
        "ledger": name,
        "steps": sum(event.count for event in events),
        "compare ms": ms["compare"],
        "pld ms": ms["pld"],
        "dp-accounting ms": ms["theirs"],
        "ratio compare": ms["compare"] / ms["theirs"],
        "ratio pld": ms["pld"] / ms["theirs"],
        "epsilon": epsilon,
        "theirs": composed(events),
        "excess %": 100 * (epsilon / truth - 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows = [row(name, events, options.repeats) for name, events in ledgers(options.entries).items()]
    show(f"Totals at delta {DELTA:g}", rows, f"dp-accounting on a grid of {STEP:g}.")


if __name__ == "__main__":
    main()
