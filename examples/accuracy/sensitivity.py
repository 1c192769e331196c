"""How far one row really moves COUNT, SUM and AVG on Adult, beside the sensitivity that dpsql states.

python examples/accuracy/sensitivity.py [--out DIR]
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from shared import BETTER, GAUSSIAN, LAPLACE, PLAIN, adult, label, panels, run, save, sensitivities, show

AGES, FILTERS = (17, 90), ["", " WHERE level > 10", " WHERE level <= 10", " WHERE age = 87"]
QUESTIONS = {"COUNT(*)": lambda t: t[0], "SUM(age)": lambda t: t[1], "AVG(age)": lambda t: t[1] / t[0]}
HEAD = ["", "exact", "removed", "added", "changed", "stated, unbounded", "stated, bounded"]


def distance(one: pd.DataFrame, other: pd.DataFrame) -> int:
    """The size of the symmetric difference: how many rows must be removed and added."""
    here, there = (Counter(table.itertuples(index=False, name=None)) for table in (one, other))
    return (here - there).total() + (there - here).total()


def most(question: str, rows: np.ndarray) -> list[float]:
    """How far the answer moves at most when a row is removed, one like these added, or one made like another. A row
    is what it adds to (count, sum); all rows are tried, equal ones once. An average of no row counts as no move."""
    kinds, total, value = np.unique(rows, axis=0).T, rows.sum(axis=0), QUESTIONS[question]
    moves = -kinds, kinds, (kinds[:, :, np.newaxis] - kinds[:, np.newaxis]).reshape(2, -1)
    with np.errstate(invalid="ignore"):
        return [float(np.nanmax(np.abs(value(total[:, np.newaxis] + move) - value(total)))) for move in moves]


def main(out: Path) -> None:
    """The distance of neighbours, a table for each question, and a plot of sums beside one of averages."""
    people = adult().rename(columns={"education-num": "level"})
    ages = people["age"].to_numpy(dtype=float)
    older = people.assign(age=people["age"].where(people.index > 0, 40))
    print(f"Without a row: distance {distance(people, people[1:])}; one changed: {distance(people, older)}")
    for question, value in QUESTIONS.items():
        table = []
        for where in FILTERS:
            passes = people.eval(where[7:].replace(" = ", " == ")) if where else ages > 0
            rows = np.stack([passes, passes * ages], axis=1)
            numbers = [f"{value(rows.sum(axis=0)):.7g}", *(f"{each:.4g}" for each in most(question, rows))]
            sql = f"SELECT {question} FROM people{where}"
            facts = [sensitivities(people, sql, near, {"age": AGES}) for near in ("unbounded", "bounded")]
            table.append([where.strip() or "all rows", *numbers, *facts])
        show(f"{question}: moved by one row at most by", HEAD, table)

    figure, (axes,) = panels()
    sizes = np.unique(np.geomspace(2, len(ages), 40).astype(int))
    moved = np.transpose([most("AVG(age)", np.stack([np.ones(n), ages[:n]], axis=1)) for n in sizes])
    for name, line, color in zip(HEAD[2:5], moved, (LAPLACE, GAUSSIAN, BETTER), strict=True):
        axes.loglog(sizes, line, color=color, label=f"a row {name}")
    axes.axhline((AGES[1] - AGES[0]) / 2, color=PLAIN, linestyle="--", label="any table, a row added: half the range")
    label(axes, "AVG(age) of Adult's first n people", "n (people)", "moved at most by (years)")
    save(figure, out, "sensitivity.png")


if __name__ == "__main__":
    run(main)
