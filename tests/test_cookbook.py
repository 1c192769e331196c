"""docs/cookbook.md: every question is asked, and its answer has the columns, intervals and cost that the page shows."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import dpsql

ROOT = Path(__file__).parent.parent
COOKBOOK = runpy.run_path(str(ROOT / "examples" / "cookbook.py"))
ENTRIES: list[Any] = list(COOKBOOK["entries"](COOKBOOK["PAGE"].read_text(encoding="utf-8")))
DRAWN = ("QUANTILE", "MEDIAN")
"""What is drawn among rows, and not the exact value of SQL."""


def heads(text: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith("| "))
    return [each.strip() for each in line.split("|")[1:-1]]


def rows(text: str) -> int:
    return sum(line.startswith("| ") for line in text.splitlines()) - 1


def check_as_the_page_shows(entry: Any, answer: dpsql.Result) -> None:
    text = COOKBOOK["shown"](answer)
    shown, now = heads(entry.answer), heads(text)
    assert [each for each in now if not each.endswith("%")] == [each for each in shown if not each.endswith("%")]
    if "> AVG" not in entry.sql:  # how many are above it is for noise to say
        assert rows(text) == rows(entry.answer), entry.question
    assert now == shown, (entry.question, now, shown)
    assert text.splitlines()[-1] == entry.answer.splitlines()[-1], entry.question


def check_as_in_plain_sql(entry: Any, answer: dpsql.Result) -> None:
    """With hardly any noise the numbers are those of DuckDB over the rows."""
    frame = pd.read_csv(ROOT / "adult_sample" / "adult.csv")
    with duckdb.connect() as connection:
        connection.register("adult", frame)
        plain = connection.execute(entry.sql).df()
    assert list(plain.columns) == list(answer.df.columns), entry.question
    texts = [name for name in plain.columns if not pd.api.types.is_numeric_dtype(plain[name])]
    keys = texts or list(plain.columns[:1])
    known = {_key(row, keys): row for row in plain.to_dict("records")}
    for row in answer.df.to_dict("records"):
        for name, cell in row.items():
            other = known[_key(row, keys)][name]
            same = cell == other or math.isclose(float(cell), float(other), rel_tol=1e-3, abs_tol=0.02)
            assert same, (entry.question, row)


def _key(row: Any, names: list[str]) -> tuple[str, ...]:
    return tuple(f"{row[name]:g}" if isinstance(row[name], float) else str(row[name]) for name in names)


def test_each_question_has_the_answer_that_the_page_shows() -> None:
    assert len(ENTRIES) >= 40
    assert len(ENTRIES) == COOKBOOK["PAGE"].read_text(encoding="utf-8").count("\n### ")
    asked = COOKBOOK["sessions"]()
    for entry in ENTRIES:
        check_as_the_page_shows(entry, asked[entry.of].query(entry.sql, epsilon=entry.epsilon, delta=1e-6, fresh=True))
    plain = [each for each in ENTRIES if each.of == "adult" and not any(word in each.sql for word in DRAWN)]
    assert len(plain) >= 12
    for entry in plain:
        check_as_in_plain_sql(entry, asked["adult"].query(entry.sql, epsilon=1e6, delta=1e-6))
