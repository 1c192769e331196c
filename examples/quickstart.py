"""Quickstart: private answers about the Adult sample, from the first query to an empty budget.

python examples/quickstart.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import dpsql

SAMPLE = Path(__file__).resolve().parent.parent / "adult_sample"


def main() -> None:
    """Five steps, each printed with its answer."""
    adult = pd.read_csv(SAMPLE / "adult.csv")

    print("1. One answer. The bounds are what we know of ages before looking at any data.\n")
    result = dpsql.query(adult, "SELECT AVG(age) AS avg_age FROM adult", epsilon=1, bounds={"age": (17, 90)})
    print(result)

    print("\n2. Declare once, ask many times. Listed keys make public groups: all of them are shown.\n")
    people = dpsql.declare(
        adult,
        bounds={"age": (17, 90), "hours-per-week": (1, 99)},
        keys={"sex": ["Female", "Male"]},
    )
    question = 'SELECT sex, COUNT(*) AS n, AVG("hours-per-week") AS hours FROM people WHERE age >= 40 GROUP BY sex'
    print(dpsql.query(people, question, epsilon=1))

    print("\n3. Keys that nobody listed are private themselves: rare ones are hidden, which needs a small delta.\n")
    question = 'SELECT "native-country", COUNT(*) AS n FROM people GROUP BY 1 ORDER BY n DESC LIMIT 5'
    print(dpsql.query(people, question, epsilon=1, delta=1e-6))

    print("\n4. A Session holds a budget and explains before it spends. What counts is the sum of all answers;")
    print("   to ask the same again gives the same numbers again, free, unless they are drawn afresh.\n")
    session = dpsql.Session({"people": people}, budget=dpsql.Budget(epsilon=1))
    print(session.explain("SELECT AVG(age) AS avg_age FROM people WHERE sex = 'Female'", epsilon=0.5))
    for fresh in (False, False, True):
        print(session.query("SELECT AVG(age) AS avg_age FROM people WHERE sex = 'Female'", epsilon=0.5, fresh=fresh))

    print("\n5. When it is spent, it is spent.\n")
    try:
        session.query("SELECT COUNT(*) FROM people", epsilon=0.1)
    except dpsql.errors.BudgetExceeded as refusal:
        print(f"BudgetExceeded: {refusal}")


if __name__ == "__main__":
    main()
