"""docs/public.md lists what is public, all of it and nothing else, and no other page promises more."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dpsql
from dpsql import accounting, accuracy, dbapi, errors, owner, testing
from tests.test_architecture import ROOT

PAGE = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
MODULES: tuple[ModuleType, ...] = (dpsql, accounting, accuracy, dbapi, errors, owner, testing)
ABOUT_THE_INSIDE = ("docs/decisions", "docs/proofs", "docs/contributing.md")
"""Pages that speak of the code, and promise nothing."""
DOTTED = re.compile(r"\bdpsql(?:\.[A-Za-z_]\w*)+")
IMPORTED = re.compile(r"\bfrom (dpsql(?:\.\w+)*) import (\([^)]*\)|.+)")
FILES = re.compile(r"\bdpsql\.(?:toml|db|csv)\b")


def listed(module: str) -> list[str]:
    """The names of a section's table."""
    section = re.split(r"\n## ", PAGE.split(f"\n## {module}\n")[1])[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def public_names(module: ModuleType) -> set[str]:
    if module is not errors:
        return set(module.__all__)
    return {name for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, Exception)}


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_the_page_lists_what_is_public(module: ModuleType):
    found = listed(module.__name__)
    assert len(found) == len(set(found))
    assert set(found) == public_names(module)
    assert all(hasattr(module, name) for name in found)


def test_the_page_has_these_modules_alone():
    assert re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE) == [module.__name__ for module in MODULES]


def promised(text: str) -> Iterator[str]:
    """The dotted names of dpsql in a text, those that it imports by name among them; names of files are none."""
    yield from DOTTED.findall(FILES.sub("", text))
    for module, names in IMPORTED.findall(text):
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names.split("#")[0]) if name != "as")


def is_public(dotted: str) -> bool:
    """Whether a name is listed, or an attribute without underscore of one that is."""
    first, *rest = dotted.split(".")[1:]
    module: Any = dpsql
    if f"dpsql.{first}" in {each.__name__ for each in MODULES}:
        if not rest:
            return True
        module, (first, *rest) = importlib.import_module(f"dpsql.{first}"), rest
    if first not in public_names(module):
        return False
    owner = getattr(module, first)
    for name in rest:
        known = hasattr(owner, name) or name in getattr(owner, "__annotations__", {})
        if name.startswith("_") or isinstance(owner, ModuleType) or not known:
            return False
        owner = getattr(owner, name, None)
    return True


def pages() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    inside = tuple(str(ROOT / each) for each in ABOUT_THE_INSIDE)
    return [path for path in found if not str(path).startswith(inside)]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_promises_other_names(path: Path):
    text = path.read_text(encoding="utf-8")
    assert [name for name in promised(text) if not is_public(name)] == []


def test_other_names_are_seen():
    text = "`dpsql.core.loss`, `dpsql.query`, dpsql.Session.spent, dpsql.toml; from dpsql.release.plan import planned\n"
    text += "from dpsql.accounting import compare, side_by_side  # no more\nfrom dpsql.accuracy import (\n laplace,\n)"
    assert [name for name in promised(text) if not is_public(name)] == [
        "dpsql.core.loss",
        "dpsql.release.plan",
        "dpsql.release.plan.planned",
        "dpsql.accounting.side_by_side",
    ]
    assert not is_public("dpsql.Session.spend")
    assert not is_public("dpsql.Session._prepare")
    assert not is_public("dpsql.session")


def test_its_example_runs(capsys: pytest.CaptureFixture[str]):
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(block, "public.md", "exec"), names)
    assert names["exact"] == (3,)
    assert abs(names["draws"].mean() - 3) < 1
    assert abs(names["without"].mean() - 2) < 1
    assert capsys.readouterr().out.startswith("(3,) ")


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
