"""The memory of a query is bounded by the length of its text, whatever form the text repeats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.executors.sql.stored_comparisons import MOST_PUSHED_CHARACTERS, conjunction
from tests.executors.planning_memory import FORMS

ROOT = Path(__file__).parent.parent.parent
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")


def peaks(engine: str, characters: int) -> dict[str, tuple[int, float]]:
    """For each form: how many repetitions were answered, and the memory taken at most, in MB."""
    command = [sys.executable, "-m", "tests.executors.planning_memory", engine, str(characters)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (number, peak) for name, number, peak in map(json.loads, run.stdout.splitlines())}


@LINUX
@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_a_short_text_takes_little_memory(engine: str) -> None:
    found = peaks(engine, 4_000)
    assert found.keys() == FORMS.keys()
    assert all(number >= 5 for number, _ in found.values()), found
    assert not {name: peak for name, (_, peak) in found.items() if peak > 80}  # 226 terms `NOT (x = k)` took 287 MB


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_the_longest_text_takes_bounded_memory(engine: str) -> None:
    assert not {name: peak for name, (_, peak) in peaks(engine, 64_000).items() if peak > 1_200}


def test_long_conjunctions_are_one_condition() -> None:
    few = ["(a)", "b > 1"]
    assert conjunction(few) == "((a)) AND (b > 1)"
    many = [f"NOT (x = {number})" for number in range(100)]
    assert len(" AND ".join(many)) * len(many) > MOST_PUSHED_CHARACTERS
    assert conjunction(many).startswith("CASE WHEN (NOT (x = 0)) AND ")
    assert conjunction(many).endswith(" THEN TRUE ELSE FALSE END")
