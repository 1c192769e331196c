"""docs/contributing.md names files that exist, for each of the changes that people make."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import dpsql
from dpsql.testing import compile_trace
from tests.test_architecture import FLOORS, ROOT

PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
CHANGES = (
    "A function", "An aggregate", "A mechanism", "An accountant", "An output format",
    "An engine", "A clause", "An error text", "A file format", "A design",
)  # fmt: skip
EXAMPLES = {"A function": "function", "An aggregate": "aggregate", "A mechanism": "mechanism", "An engine": "engine"}
PATH = re.compile(r"`((?:dpsql|tests|docs|benchmarks)/[^`\s]*|[A-Z][a-z]*\.md|README\.md)`")


def section(change: str) -> str:
    return PAGE.split(f"\n## {change}\n")[1].split("\n## ")[0]


def files(text: str) -> list[str]:
    return PATH.findall(text)


def test_it_has_the_ten_changes():
    assert re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE) == ["Architecture", *CHANGES]


@pytest.mark.parametrize("change", ["Architecture", *CHANGES])
def test_every_file_that_it_names_exists(change: str):
    named = files(section(change))
    assert len(named) >= 4
    assert [each for each in named if not (ROOT / each).exists()] == []
    assert [each for each in named if each.endswith("/") != (ROOT / each).is_dir()] == []


def test_a_file_that_is_gone_is_seen():
    assert files("see `dpsql/answer.py`, `README.md`, `docs/none.md` and `dpsql/sql/`, not `lacks`") == [
        "dpsql/answer.py", "README.md", "docs/none.md", "dpsql/sql/"
    ]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_names_code_and_a_test(change: str):
    named = files(section(change))
    assert any(each.startswith("dpsql/") for each in named)
    assert any(each.startswith("tests/") for each in named)


@pytest.mark.parametrize(("change", "example"), EXAMPLES.items())
def test_four_of_them_have_an_example(change: str, example: str):
    assert f"Example: `tests/toys/test_{example}.py`" in section(change)


def test_the_architecture_names_every_package():
    folders = {room for floor in FLOORS for room in floor if (ROOT / "dpsql" / room).is_dir()}
    named = [each.split("/")[1] for each in files(section("Architecture")) if each.startswith("dpsql/")]
    assert set(named) - {""} == folders


def test_the_compiler_does_what_it_says_of_one_statement():
    part = section("Architecture").split("### The compiler")[1].split("###")[0]
    (sql,) = re.findall(r"```sql\n(.+?)\n```", part)
    frame = pd.DataFrame({"sex": ["F", "M"], "age": [30, 40]})
    table = dpsql.Table(frame, bounds={"age": (0, 100)}, keys={"sex": ["F", "M"]})
    trace = compile_trace(sql, {"people": table})
    shown = [trace.syntax, trace.rewrite, *trace.releases, trace.postprocess]
    assert shown == [sql, *re.findall(r"```text\n +(.+?)\n +```", part)[:-1]]
    assert re.findall(r"```text\n +(.+?)\n +```", part)[-1] in str(trace)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
