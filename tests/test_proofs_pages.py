"""The pages of docs/proofs: what they refer to exists, every claim is whole, and nothing of the core is left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "proofs"
INDEX = PAGES / "README.md"
NUMBERED = sorted(PAGES.glob("[0-9][0-9]-*.md"))
CORE = ROOT / "dpsql" / "core"
PARAGRAPHS = ("Claim", "Proof", "Code", "Tests", "Source")
_REFERENCE = re.compile(r"`((?:dpsql|tests|docs|benchmarks)/[\w./-]+\.\w+)((?:::[\w.]+)*)`")
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


@cache
def names_in(path: Path) -> frozenset[str]:
    """The functions, classes, methods and constants of a module, methods as Class.method."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            found.update(f"{node.name}.{name}" for name in methods)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(each.id for each in targets if isinstance(each, ast.Name))
    return frozenset(found)


def references(text: str) -> list[tuple[str, str]]:
    """(file, name) of each reference; an empty name for a file as a whole."""
    return [(path, name.removeprefix("::").replace("::", ".")) for path, name in _REFERENCE.findall(text)]


def claims(page: Path) -> dict[str, str]:
    """The sections of a page by heading."""
    _, *sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    return {section.splitlines()[0]: section for section in sections}


def paragraph(section: str, name: str) -> str:
    """From "**Name" to the next empty line."""
    found = re.search(rf"^\*\*{name}[.:]\*\*(.*?)(?:\n\s*\n|\Z)", section, flags=re.MULTILINE | re.DOTALL)
    return found.group(1).strip() if found else ""


def missing(text: str) -> list[str]:
    """References that lead to nothing."""
    found = []
    for path, name in references(text):
        file = ROOT / path
        if not file.is_file():
            found.append(path)
        elif name and name not in names_in(file):
            found.append(f"{path}::{name}")
    return found


@pytest.mark.parametrize("page", [INDEX, *NUMBERED], ids=lambda page: page.name)
def test_what_a_page_refers_to_exists(page: Path):
    text = page.read_text()
    assert not missing(text)
    for target, _ in _LINK.findall(text):
        assert "://" in target or not target or (page.parent / target).is_file(), target


@pytest.mark.parametrize("page", NUMBERED, ids=lambda page: page.name)
def test_every_claim_is_whole(page: Path):
    number = str(int(page.name[:2]))
    sections = claims(page)
    assert page.read_text().startswith(f"# {number}. ")
    assert sections
    for place, (heading, section) in enumerate(sections.items(), start=1):
        assert heading.startswith(f"{number}.{place} "), heading
        for name in PARAGRAPHS:
            assert paragraph(section, name), f"{heading}: no {name}"
        assert "∎" in section, f"{heading}: the proof does not end"
        code, tests = references(paragraph(section, "Code")), references(paragraph(section, "Tests"))
        assert {path.split("/")[0] for path, _ in code} == {"dpsql"}, heading
        assert {path.split("/")[0] for path, _ in tests} == {"tests"}, heading
        assert any(re.search(r"/test_\w+\.py$", path) for path, _ in tests), heading


def test_what_is_named_as_a_test_is_one_or_a_planted_lie():
    """Names in files of tests begin with test_, or Test, or are lies, which the list of lies has."""
    for page in NUMBERED:
        for section in claims(page).values():
            for path, name in references(paragraph(section, "Tests")):
                if name and not name.startswith(("test_", "Test")):
                    text = (ROOT / path).read_text()
                    assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{path}::{name} is planted nowhere"


@pytest.mark.parametrize("page", NUMBERED, ids=lambda page: page.name)
def test_what_is_meant_for_the_reader_is_not_passed_over(page: Path):
    for word in ("clearly", "obviously", "trivially", "it is easy to see"):
        assert word not in page.read_text().casefold()


def files_of_core() -> set[str]:
    return {path.relative_to(CORE).as_posix() for path in CORE.rglob("*.py") if path.name != "__init__.py"}


def reading_order(text: str) -> list[str]:
    """The files of the core in the rows of the index's table."""
    rows = [line.split("|")[2] for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)]


def test_the_reading_order_is_complete():
    assert sorted(reading_order(INDEX.read_text())) == sorted(files_of_core())


def test_every_file_with_mathematics_is_on_a_page():
    without = set(re.findall(r"`([\w/]+\.py)`", paragraph(INDEX.read_text(), "Without mathematics")))
    assert without
    named = {path for page in NUMBERED for path, _ in references(page.read_text()) if path.startswith("dpsql/core/")}
    assert without <= files_of_core()
    assert files_of_core() - without == {path.removeprefix("dpsql/core/") for path in named} - without


def test_every_page_is_in_the_index():
    linked = {target for target, _ in _LINK.findall(INDEX.read_text())}
    assert {page.name for page in NUMBERED} <= linked
    assert [int(page.name[:2]) for page in NUMBERED] == list(range(1, len(NUMBERED) + 1))


def test_a_lie_of_a_page_is_found():
    """The checks above fail where a page says what is not so."""
    assert missing("`dpsql/core/cost.py::Cost.of` `dpsql/core/ledger/filters.py`") == []
    assert missing("`dpsql/core/cost.py::Costs`") == ["dpsql/core/cost.py::Costs"]
    assert missing("`dpsql/core/costs.py`") == ["dpsql/core/costs.py"]
    assert missing("`tests/test_proofs_pages.py::test_a_lie_of_a_page`") != []
    assert paragraph("**Claim.** It is so.\n\n**Proof.** By\nit. ∎\n", "Proof") == "By\nit. ∎"
    assert reading_order("| 1 | `a.py`, `b/c.py` | x |\n| | `d.py` | y |") == ["a.py", "b/c.py"]
