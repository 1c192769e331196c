"""Numbers in hints are examples, and each hint says how to choose another number."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError
from dpsql.session.advice import Place, error_text

SOURCES = Path(dpsql.__file__).parent
GOLDEN = Path(__file__).parent / "refusals.golden"
A_LIMIT = "choose a limit that most people stay below"
FRAME = pd.DataFrame({"pid": [1, 2], "x": [1.0, 2.0]})

REFUSED = [
    ("SELECT COUNT(*) FROM t", A_LIMIT),
    ("SELECT pid, COUNT(*) FROM t GROUP BY pid", A_LIMIT),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 'x') COUNT(*) FROM t", A_LIMIT),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 'x') COUNT(*) FROM t", A_LIMIT),
    ("SELECT SUM(x, contribution_bounds_per_row => 5) FROM t", "choose bounds that most values lie between"),
    ("SELECT CORR(x, x, contribution_bounds_per_row => (0, 1)) FROM t", "choose bounds that most values lie between"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) SUM(x) FROM t",
     "choose bounds that most values lie between"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "how"), REFUSED)
@pytest.mark.parametrize("place", Place)
def test_a_hint_with_a_limit_says_how_to_choose_it(sql: str, how: str, place: Place) -> None:
    session = dpsql.Session({"t": dpsql.Table(FRAME, unit="pid")}, budget=dpsql.Budget(1), auto_bounds=False)
    with pytest.raises(DPSQLError) as refused:
        session.query(sql, epsilon=1)
    text = error_text(refused.value, place)
    assert how in text.casefold()
    assert not re.search(r"max_rows ?= ?4\b", text)


def test_no_hint_proposes_four_rows() -> None:
    four = re.compile(r"max_rows(_contributed)? ?= ?4\b")
    assert not [file.name for file in SOURCES.rglob("*.py") if four.search(file.read_text(encoding="utf-8"))]


def test_refusals_that_name_a_limit_say_how_to_choose_it() -> None:
    for refusal in GOLDEN.read_text(encoding="utf-8").split("\n#### "):
        hint = "\n".join(line for line in refusal.split("\n")[1:] if "LINE " not in line)
        if re.search(r"max_(rows|groups)(_contributed)? ?= ?\d|CLAMP\(\w+, 0, 20\)", hint):
            assert A_LIMIT in hint.casefold(), refusal
