"""Pages: the navigation lists all but decision records, every link leads somewhere, generated parts are complete."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpsql import errors
from dpsql.shell.prompt.commands import COMMANDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's heads, as GitHub and the site make them."""
    bare = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ +(.*)$", bare, re.MULTILINE)
    texts = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in heads)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in texts}


def broken(page: Path, text: str) -> list[str]:
    """The links of a page to other pages, files and heads here that lead nowhere."""
    lost = []
    for link in _LINK.findall(_CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
            lost.append(link)
    return lost


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "SECURITY.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_a_lost_link_is_seen() -> None:
    text = "[a](docs/nowhere.md) [b](docs/sql/query.md#nowhere) `[c](d)` [e](docs/sql/query.md)"
    assert broken(ROOT / "README.md", text) == [
        "docs/nowhere.md",
        "docs/sql/query.md#nowhere",
    ]


def test_every_page_is_in_the_navigation_once() -> None:
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    first, *groups = hooks["navigation"](DOCS)
    listed = [first, *(page for group in groups for pages in group.values() for page in pages)]
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES if page not in DECISIONS)
    named = {name for names in hooks["GROUPS"].values() for name in names}
    assert all((DOCS / name).exists() for name in named)


def test_decision_records_are_not_part_of_the_site() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    excluded = re.search(r"^exclude_docs: \|\n((?:  .*\n)+)", settings, re.MULTILINE)
    assert excluded is not None
    assert "/decisions/" in excluded[1].split()
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    listed = str(hooks["navigation"](DOCS))
    assert DECISIONS
    assert not any(page.name in listed for page in DECISIONS if page.name != "README.md")
    assert "decisions/" not in listed


def test_what_code_fills_in_is_whole() -> None:
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    pages = [(DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8") for name in ("cli", "errors")]
    command, tree = (hooks["on_page_markdown"](page) for page in pages)
    assert "made by code" not in command + tree
    assert "--no-ledger" in command
    assert all(f"| `{each.name}" in command for each in COMMANDS)
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    rows = {kind: line.split(" | ") for line in tree.splitlines() for kind in re.findall(r"^\| <nobr>`(\w+)`", line)}
    assert sorted(rows) == sorted(kinds)
    codes = {kind: int(row[2]) for kind, row in rows.items()}
    assert codes == dict.fromkeys(kinds, 1) | {"BudgetExceeded": 3, "ConfirmationRequired": 4}
    assert all(len(row) == 4 for row in rows.values())


def test_the_page_of_messages_has_all_of_them() -> None:
    texts = runpy.run_path(str(DOCS / "reference" / "message_texts.py"))
    assert texts["error_names"]() == frozenset(
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.DPSQLError)
    )
    found = texts["errors"]()
    assert ("WITHIN is for a query of one step.", "Say epsilon, or ask for each answer by itself.") in (
        found["UnsupportedSQL"]
    )
    assert sum(map(len, found.values())) > 500
    assert all(len(texts["sentences"](folders)) > 10 for folders in texts["SHOWN"].values())
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    page = hooks["on_page_markdown"]((DOCS / "reference" / "messages.md").read_text(encoding="utf-8"))
    assert "made by code" not in page
    assert all(f"### {name}" in page for name in found)


def test_every_error_has_a_remedy_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    remedies = [vars(kind)["remedy"] for kind in kinds]
    assert len(set(remedies)) == len(kinds)
    assert all(len(remedy.split()) > 4 and remedy.endswith(".") for remedy in remedies)


def test_links_to_files_beside_the_site_are_words_there() -> None:
    hooks = runpy.run_path(str(DOCS / "reference" / "hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="owners/begin.md"))
    text = "[a](../../SECURITY.md) [b](../sql.md#x) ![c](../../x.png) [d](bounds.md) [e](../decisions/README.md)"
    assert hooks["on_page_markdown"](text, page=page) == "a [b](../sql.md#x) ![c](../../x.png) [d](bounds.md) e"
    page = SimpleNamespace(file=SimpleNamespace(src_uri="engines.md"))
    assert hooks["on_page_markdown"]("[a](decisions/README.md) [b](sql.md)", page=page) == "a [b](sql.md)"
