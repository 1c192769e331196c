"""The pages for owners: their Python runs as it stands, page by page, on copies; their links lead somewhere."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from dpsql.shell.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "owners").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_code_runs(page: Path, sample: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(sample.parent)  # which holds a copy of adult_sample
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, page.name, "exec"), names)


def test_the_budget_page_shows_what_it_says(sample: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    test_its_code_runs(ROOT / "docs" / "owners" / "budget.md", sample, monkeypatch)
    shown = capsys.readouterr().out
    assert "True True epsilon 0.5 adult.ledger" in shown
    assert "('epsilon = 5.0',)" in shown
    assert "Budget(epsilon=5, delta=1e-06) epsilon 4.5" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_commands_exist(page: Path, capsys: pytest.CaptureFixture[str]):
    for words in re.findall(
        r"^ {4,}dpsql (\w+(?: (?:show|verify|export|renew))?)", page.read_text(), flags=re.MULTILINE
    ):
        assert main([*words.split(), "--help"]) == 0, words
        assert capsys.readouterr().out.startswith(f"usage: dpsql {words}")


def test_the_demo_of_the_makefile_runs_again_and_again(sample: Path, capsys: pytest.CaptureFixture[str]):
    """What `make demo` runs, three times in a copy of the clone: paid once."""
    recipe = (ROOT / "Makefile").read_text().split("\ndemo: ")[1].split("\n\n")[0].split("\n", 1)[1]
    words = shlex.split(recipe.replace("\\\n", " ").replace("$(BIN)/dpsql", ""))
    spent = []
    for _ in range(3):
        with contextlib.chdir(sample.parent):
            assert main(words) == 0
        spent.append(capsys.readouterr().err.count("spent epsilon 0.5"))
    assert spent == [3, 0, 0]
