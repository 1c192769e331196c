"""Budgets: a plain question enters few files and loads few modules. The commit that raises a budget says why."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "entered.py"
BUDGETS = {  # as `benchmarks/entered.py` counts; a few are left free
    "files, first question": 169,
    "functions, first question": 1_400,
    "files, known question": 61,
    "functions, known question": 354,
    "modules of dpsql.query": 223,
    "modules after a first question": 276,
}
_PATTERN = r"""cold: (\d+) files, (\d+) functions
warm: (\d+) files, (\d+) functions
modules loaded: (\d+) with dpsql.query, (\d+) after a first question"""


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    run = [sys.executable, str(BENCHMARK)]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    found = re.fullmatch(_PATTERN, printed.strip())
    assert found is not None, printed
    return dict(zip(BUDGETS, map(int, found.groups()), strict=True))


@pytest.mark.parametrize("name", BUDGETS)
def test_a_plain_question_keeps_to_its_budget(counts: dict[str, int], name: str):
    assert counts[name] <= BUDGETS[name], f"{name}: more than the budget on record"
