"""What a question costs that no row has a part in: processor time of all but the executor's run over the table.

python benchmarks/planning.py [CHECKOUT ...] [--rounds 5] [--questions NAME ...]

A *new* text was never asked before (its aggregates stand in another order); a *known* one is asked again in the same
session, with fresh noise. The table has 10 rows. Each checkout has a process of its own; in every round all are asked
one after the other, and medians are printed, in ms.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from before_after import Q2, Q3

HERE = Path(__file__).parent
PEOPLE = {"Q1": "SELECT COUNT(*) FROM people", "Q2": Q2, "Q3": Q3}
COLUMNS = [f"c{number}" for number in range(100)]
AGES = range(100)


def wide() -> Any:
    """A table of 100 columns of numbers, and some to tell rows apart by."""
    import dpsql

    rows = np.arange(10)
    cells: dict[str, Any] = dict.fromkeys(COLUMNS, rows % 5)
    cells |= {f"r{number}": rows / 2 for number in range(20)}  # floats, which may be NaN
    cells |= {"age": rows * 9, "income": rows * 1_000, "sex": ["Female", "Male"] * 5}
    bounds: dict[str, Any] = {name: (0, 50 + 7 * place) for place, name in enumerate(COLUMNS)}
    bounds |= {f"r{number}": (-1, 10 + number) for number in range(20)}
    bounds |= {"age": (0, 100), "income": (0, 200_000)}
    return dpsql.Table(pd.DataFrame(cells), bounds=bounds, keys={"sex": ["Female", "Male"]})


def _mixture() -> list[str]:
    found = [f"COUNT(r{number})" for number in range(10)]
    found += [f"AVG(r{number})" for number in range(20)]
    found += [f"SUM(c{number}) FILTER (WHERE age > {number})" for number in range(20)]
    found += [f"AVG(c{number}) FILTER (WHERE sex = 'Male')" for number in range(20)]
    found += [f"COUNT(DISTINCT c{number})" for number in range(10)]
    found += [f"COUNT_IF(c{number} > 3)" for number in range(10)]
    return [*found, *(f"VARIANCE(c{number})" for number in range(9)), "COUNT(*)"]


HUNDREDS: dict[str, list[str]] = {
    "sums and averages": [f"{'SUM' if place % 2 else 'AVG'}({name})" for place, name in enumerate(COLUMNS)],
    "sums": [f"SUM({name})" for name in COLUMNS],
    "averages of floats that may be NaN": [
        f"{name}(r{place})" for place in range(20) for name in ("AVG", "SUM", "COUNT", "VARIANCE", "STDDEV")
    ],
    "bands": [f"SUM(CASE WHEN age = {age} THEN 1 ELSE 0 END)" for age in AGES],
    "bands of income": [f"SUM(CASE WHEN age = {age} THEN income ELSE 0 END)" for age in AGES],
    "50 bands, two of each": [
        f"{call}(CASE WHEN age BETWEEN {2 * age} AND {2 * age + 1} THEN {value} END)"
        for age in AGES[:50]
        for call, value in (("COUNT", 1), ("SUM", "income"))
    ],
    "conditions that nest": [f"COUNT_IF(age < {age})" for age in range(1, 101)],
    "mixture": _mixture(),
}


def text(name: str, number: int) -> str:
    """The question for the so-manieth time: its aggregates in another order."""
    aggregates = list(HUNDREDS[name])
    random.Random(number).shuffle(aggregates)
    return f"SELECT {', '.join(aggregates)} FROM wide"


def people_text(name: str, number: int) -> str:
    return PEOPLE[name] + " " * number


# In the process of a checkout


class Meter:
    """Processor seconds of everything but the executor's run over the table."""

    def __init__(self) -> None:
        try:
            from dpsql.executors.pandas.executor import PandasExecutor
        except ImportError:  # where earlier checkouts have it
            from dpsql.executors.pandas import PandasExecutor

        self.inside = 0.0
        execute = PandasExecutor.execute

        def timed(executor: Any, *asked: Any) -> Any:
            start = time.process_time()
            try:
                return execute(executor, *asked)
            finally:
                self.inside += time.process_time() - start

        PandasExecutor.execute = timed  # type: ignore[method-assign]

    def ms(self, held: Any, sql: str, epsilon: float) -> float:
        gc.collect()
        self.inside, start = 0.0, time.process_time()
        held.query(sql, epsilon=epsilon, delta=1e-6, fresh=True)
        return 1e3 * (time.process_time() - start - self.inside)


def serve() -> None:
    """Reads numbers of rounds and names of questions; writes the ms of a new text and of the same once more."""
    import people

    import dpsql

    meter = Meter()
    wides = dpsql.Session({"wide": wide()}, budget=dpsql.Budget(1e9, 0.999))
    asked = people.session(people.people(10))
    for line in sys.stdin:
        number, _, name = line.strip().partition(" ")
        held, sql = (wides, text(name, int(number))) if name in HUNDREDS else (asked, people_text(name, int(number)))
        epsilon = 1 + int(number) / 1000
        new = meter.ms(held, sql, epsilon)
        known = median(meter.ms(held, sql, epsilon) for _ in range(5))
        print(new, known, flush=True)


# In the first process


class Checkout:
    def __init__(self, root: Path) -> None:
        path = os.pathsep.join([str(root.resolve()), str(HERE)])
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ms(self, name: str, number: int) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(number, name, file=self._process.stdin, flush=True)
        return [float(word) for word in self._process.stdout.readline().split()]

    def close(self) -> None:
        self._process.communicate()


def table(roots: Sequence[Path], names: Sequence[str], rounds: int) -> None:
    """Prints a line for each question, two columns for each checkout."""
    checkouts = [Checkout(root) for root in roots]
    print(f"{'question':36}" + "".join(f"{str(root)[-12:] + ' new':>17} {'known':>8}" for root in roots))
    for name in names:
        for each in checkouts:
            each.ms(name, 0)  # what is loaded on first use is not the question's
        found = [[each.ms(name, number) for each in checkouts] for number in range(1, rounds + 1)]
        medians = np.median(np.array(found), axis=0)
        print(f"{name:36}" + "".join(f"{new:17.2f} {known:8.2f}" for new, known in medians), flush=True)
    for each in checkouts:
        each.close()


def main() -> None:
    known = ["Q1", "Q2", "Q3", *HUNDREDS]
    parser = argparse.ArgumentParser(description="Processor time of questions without their rows.")
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE.parent], metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", nargs="*", default=known, choices=known, metavar="NAME")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.serve:
        serve()
    else:
        table(said.checkouts or [HERE.parent], said.questions, said.rounds)


if __name__ == "__main__":
    main()
