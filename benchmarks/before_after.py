"""Two checkouts of dpsql beside each other: how much processor time the second takes for each second of the first.

python benchmarks/before_after.py BEFORE AFTER [--rows 1e6] [--rounds 9] [--questions Q2 Q3 ...] [--json FILE]

Each checkout has a process of its own that holds the same tables. In every round both answer a question several times,
one after the other and in turns first; the ratio of their processor times is a round's, and the median over rounds is
printed beside the least and the largest. Whatever else the machine does falls on both. Answers are warm: the same
session answered the question before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
SECONDS_A_ROUND = 0.3
NUMBERS = ["age", "income", "hours"]
Q3 = "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY education"
LOGARITHMS = (
    "SELECT SUM(CLAMP(LN(income + 1), 0, 13)), AVG(CLAMP(CBRT(age), 0, 5)) FROM people WHERE EXP(hours / 99) > 1.4"
)
Making = Callable[[pd.DataFrame], pd.DataFrame]


def reals(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(NUMBERS, "float64"))


def reversed_reals(frame: pd.DataFrame) -> pd.DataFrame:
    return reals(frame).iloc[::-1]


def block(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers as columns of one matrix that is stored row by row."""
    held = np.ascontiguousarray(frame[NUMBERS].to_numpy(dtype=np.float64))
    return pd.concat([pd.DataFrame(held, columns=NUMBERS, copy=False), frame.drop(columns=NUMBERS)], axis=1)


Q2 = "SELECT COUNT(*), SUM(income), AVG(age) FROM people WHERE hours > 40"
QUESTIONS: dict[str, tuple[str, Making]] = {
    "Q2": (Q2, lambda frame: frame),
    "Q3": (Q3, lambda frame: frame),
    "Q4": (
        "SELECT state, education, sex, COUNT(*), AVG(income) FROM people GROUP BY state, education, sex",
        lambda frame: frame,
    ),
    "Q5": ("SELECT education, COUNT(DISTINCT pid), SUM(income) FROM people GROUP BY education", lambda frame: frame),
    "Q6": ("SELECT zip, COUNT(*) FROM people GROUP BY zip", lambda frame: frame),
    "Q2, reals": (Q2, reals),
    "Q3, reals": (Q3, reals),
    "roots, reals": (LOGARITHMS, reals),
    "Q2, reversed reals": (Q2, reversed_reals),
    "roots, reversed reals": (LOGARITHMS, reversed_reals),
    "Q2, a matrix by rows": (Q2, block),
    "Q3, a matrix by rows": (Q3, block),
    "roots, a matrix by rows": (LOGARITHMS, block),
}
PEOPLE_OF_FOUR = ("Q5",)


# In the process of a checkout


def serve(rows: int) -> None:
    """Reads names of questions, and how often to answer each; writes processor seconds."""
    from people import BOUNDS, KEYS, people

    import dpsql

    frame = people(rows)
    frame["pid"] = np.random.default_rng(1).integers(0, rows // 4, rows)
    sessions: dict[str, Any] = {}
    for line in sys.stdin:
        name, _, times = line.strip().rpartition(" ")
        sql, making = QUESTIONS[name]
        if name not in sessions:
            unit = {"unit": "pid", "max_rows": 4} if name in PEOPLE_OF_FOUR else {}
            held = dpsql.Table(making(frame), bounds=BOUNDS, keys=KEYS, **unit)
            sessions[name] = dpsql.Session({"people": held}, budget=dpsql.Budget(1e9, 0.999))
        start = time.process_time()
        for _ in range(int(times)):
            sessions[name].query(sql, epsilon=1, delta=1e-6, fresh=True)
        print(time.process_time() - start, flush=True)


# In the first process


class Checkout:
    def __init__(self, root: Path, rows: int) -> None:
        path = os.pathsep.join([str(root.resolve()), str(HERE)])
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--rows", str(rows)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str, times: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, times, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def compare(before: Checkout, after: Checkout, name: str, rounds: int) -> dict[str, Any]:
    both = {"before": before, "after": after}
    for each in both.values():
        each.seconds(name, 2)
    times = max(1, round(SECONDS_A_ROUND / max(1e-3, before.seconds(name, 1))))
    found: dict[str, list[float]] = {word: [] for word in both}
    for each in range(rounds):
        for word in list(both) if each % 2 == 0 else reversed(both):
            found[word].append(both[word].seconds(name, times) / times)
    ratios = sorted(new / old for old, new in zip(found["before"], found["after"], strict=True))
    return {
        "question": name,
        "before ms": 1e3 * median(found["before"]),
        "after ms": 1e3 * median(found["after"]),
        "ratio": median(ratios),
        "least": ratios[0],
        "largest": ratios[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of two checkouts of dpsql.")
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--questions", nargs="*", default=list(QUESTIONS), choices=list(QUESTIONS), metavar="QUESTION")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.serve:
        serve(int(said.rows))
        return
    if len(said.checkouts) != 2:
        parser.error("name two checkouts: before and after")
    before, after = (Checkout(root, int(said.rows)) for root in said.checkouts)
    print(f"{'question':26} {'before ms':>10} {'after ms':>10} {'ratio':>7} {'least':>7} {'largest':>8}")
    found = []
    for name in said.questions:
        row = compare(before, after, name, said.rounds)
        found.append(row)
        cells = (row["before ms"], row["after ms"], row["ratio"], row["least"], row["largest"])
        print("{:26} {:10.2f} {:10.2f} {:7.3f} {:7.3f} {:8.3f}".format(name, *cells), flush=True)
    before.close()
    after.close()
    if said.json:
        said.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
