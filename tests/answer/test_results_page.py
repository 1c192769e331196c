"""docs/results.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dpsql

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
CALLS = [
    call for row in re.findall(r"^\| .* \|.*$", PAGE, re.MULTILINE)[1:] for call in re.findall(r"`(answer\..*?)`", row)
]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found = re.search("```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        names: dict[str, Any] = {}
        exec(found[1], names)
    said = re.search(r"columns.tolist\(\) +# (\[.*?\])", PAGE)
    assert said is not None
    assert str(names["answer"].to_pandas(intervals=True).columns.tolist()) == said[1]
    return names


def test_the_page_has_its_calls() -> None:
    assert {call.partition("(")[0] for call in CALLS} == {
        f"answer.{each}" for each in dir(dpsql.Result) if each.startswith("to_") or each == "plot"
    } - {"answer.to_text", "answer.to_pandas"}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_of_the_page_runs(
    call: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    eval(call.replace("\\t", "\t"), dict(names))
    for path in re.findall(r'"(age\.\w+)"', call):
        assert (tmp_path / path).stat().st_size
