"""The tutorial: a notebook without outputs, which runs in a kernel as it stands, and what the site makes of it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import nbformat
import pytest

from tests.test_site import DOCS, broken

NOTEBOOK = DOCS / "tutorial.ipynb"


@pytest.fixture(scope="module")
def page() -> str:
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    return str(hooks["on_page_markdown"]((DOCS / "tutorial.md").read_text(encoding="utf-8")))


def test_its_source_holds_no_outputs() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_every_cell_gives_what_its_text_says(page: str) -> None:
    assert "made by code" not in page
    assert page.count("<table") >= 5
    assert page.count("data:image/png;base64,") == 1
    assert len(re.findall("^Protects   one row of adult", page, re.MULTILINE)) + page.count(">Protects   one row") == 1
    assert "answered before: spent nothing" in page
    assert "True adult.ledger" in page
    assert re.search(r"^n,|^sex,n,n_low,n_high,hours,hours_low,hours_high$", page, re.MULTILINE)
    assert "small groups hidden" in page or re.search(r"\d+ groups; ", page)
    assert "WITHIN 40" in page
    assert "±40" in page


def test_what_is_refused_is_refused_as_it_says_and_nothing_else(page: str) -> None:
    errors = re.findall(r"^```text\n(\w+): ", page, re.MULTILINE)
    assert errors == ["RawColumn", "UnknownGroups", "BudgetExceeded"]
    assert "Traceback" not in page


def test_its_links_lead_somewhere() -> None:
    texts = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "markdown"]
    assert any("](" in text for text in texts)
    assert broken(Path(DOCS / "tutorial.md"), "\n".join(texts)) == []
