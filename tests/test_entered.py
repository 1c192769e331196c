"""A plain question stays in few files, and loads few modules. The numbers are budgets: raised with a reason."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "entered.py"
BUDGETS = {  # as `benchmarks/entered.py` counts; a few are left free
    "files, first question": 159,  # 0119, 0116, 0117, constants (0063), later releases (0086), 0105, 0113
    "functions, first question": 1_320,  # 0125, 0119, 0121, 0116, 0074, 0063, 0070, 0086, 0093, 0031, 0033, 0034, 0039
    "files, known question": 57,  # 0119, 0121, engines with words of their own (0053, 0055), warnings beside an answer
    "functions, known question": 337,  # 0119, 0121, what an earlier release showed is asked for, and is none (0086)
    "modules of dpsql.query": 200,  # 0119, 0116, 0117, 0093, 0063, 0074, 0050, 0056, 0039, 0042, 0048
    "modules after a first question": 248,  # 0119, 0116, 0117, later releases (0086), 0063, 0070, 0105
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
