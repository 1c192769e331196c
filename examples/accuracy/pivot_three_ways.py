"""One pivot three ways: bands of age as columns by CASE, as groups, and each by a query of its own. 1,000 people.

python examples/accuracy/pivot_three_ways.py [--out DIR]
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from shared import BETTER, LAPLACE, PLAIN, WORSE, adult, label, panels, run, save, show

import dpsql
from dpsql.accuracy import laplace

EPSILON, ANSWERS = 0.1, 100
ENDS = (17, 25, 30, 35, 40, 45, 50, 60)
BANDS = [f"{low}-{high - 1}" for low, high in zip(ENDS, (*ENDS[1:], 91), strict=True)]
BOUNDS = {"age": (17, 90), "hours": (1, 99)}
WORTH = {"people": "1", "hours": "hours"}
"""What a person adds to a band."""


def condition(band: str) -> str:
    low, high = band.split("-")
    return f"age BETWEEN {low} AND {high}"


def asked(people: pd.DataFrame, sql: str, epsilon: float) -> pd.DataFrame:
    return dpsql.query(people, sql, epsilon=epsilon, bounds=BOUNDS).df


def by_columns(people: pd.DataFrame, worth: str) -> np.ndarray:
    """One row, a column for each band."""
    columns = [f"SUM(CASE WHEN {condition(band)} THEN {worth} ELSE 0 END)" for band in BANDS]
    return asked(people, f"SELECT {', '.join(columns)} FROM people", EPSILON).to_numpy(dtype=float)[0]


def by_groups(people: pd.DataFrame, worth: str) -> np.ndarray:
    """A row for each band. The names of the bands are in the text, so that they are public."""
    band = "CASE " + " ".join(f"WHEN {condition(band)} THEN '{band}'" for band in BANDS) + " END"
    found = asked(people, f"SELECT {band} AS band, SUM({worth}) AS s FROM people GROUP BY 1", EPSILON)
    return found.set_index("band")["s"].loc[BANDS].to_numpy(dtype=float)


def one_by_one(people: pd.DataFrame, worth: str) -> np.ndarray:
    """A query for each band, of an equal share of epsilon."""
    texts = [f"SELECT SUM({worth}) FROM people WHERE {condition(band)}" for band in BANDS]
    return np.array([asked(people, sql, EPSILON / len(BANDS)).iloc[0, 0] for sql in texts], dtype=float)


WAYS: dict[str, tuple[Callable[[pd.DataFrame, str], np.ndarray], int]] = {
    "CASE columns, one query": (by_columns, 1),
    "GROUP BY, one query": (by_groups, 1),
    f"{len(BANDS)} queries": (one_by_one, len(BANDS)),
}
"""Each with the parts that it divides epsilon into."""


def noise(most: int, shares: int) -> float:
    """The standard deviation of noise on whole numbers, for a share of epsilon and values up to `most`."""
    a = math.exp(-EPSILON / shares / most)
    return math.sqrt(2 * a) / (1 - a)


def main(out: Path) -> None:
    """A table of errors for counts and one for sums, and the counts as bars."""
    people = adult()[:1000].rename(columns={"hours-per-week": "hours"})
    bands = pd.cut(people["age"], [*ENDS, 91], right=False, labels=BANDS)
    exact = {
        "people": bands.value_counts()[BANDS].to_numpy(dtype=float),
        "hours": people["hours"].groupby(bands, observed=False).sum()[BANDS].to_numpy(dtype=float),
    }
    seen: dict[str, np.ndarray] = {}
    for what, worth in WORTH.items():
        rows = []
        for way, (ask, shares) in WAYS.items():
            found = np.array([ask(people, worth) for _ in range(ANSWERS)])
            if what == "people":
                seen[way] = found[0]
            error = math.sqrt(np.square(found - exact[what]).mean())
            most = 1 if what == "people" else BOUNDS["hours"][1]
            rows.append([way, f"{EPSILON / shares:g}", f"{noise(most, shares):.1f}", f"{error:.1f}"])
        head = ["way", "epsilon of a band", "noise", f"of {ANSWERS} answers (random draws)"]
        show(f"Error of the {what} of a band, at epsilon {EPSILON} in all", head, rows)

    figure, every = panels(3)
    for axes, (way, (_, shares)), color in zip(every, WAYS.items(), (BETTER, LAPLACE, WORSE), strict=True):
        reach = laplace(epsilon=EPSILON / shares, discrete=True).exact
        places = np.arange(len(BANDS))
        axes.bar(places, seen[way], color=color, label="noisy")
        axes.errorbar(places, exact["people"], yerr=reach, fmt=".", color=PLAIN, label=f"exact, ±{reach:.0f}")
        axes.axhline(0, color=PLAIN, linewidth=0.5)
        axes.set_xticks(places, BANDS, rotation=90, fontsize=8)
        axes.set_ylim(-250, 600)
        label(axes, way, "age (years)", "people")
    save(figure, out, "pivot_three_ways.png")


if __name__ == "__main__":
    run(main)
