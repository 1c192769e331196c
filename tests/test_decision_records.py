"""docs/decisions: short records, one per subject, with a status, all listed on the index page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
MOST_RECORDS = 40
MOST_WORDS = 400
TITLE = re.compile(r"# (\d{4}) (\S.*)")
STATUS = re.compile(r"^Status: (accepted\b|superseded by \[\d{4}\]\([\w.-]+\))", re.MULTILINE)
PARTS = ("Context", "Decision", "Consequences")
ROW = re.compile(r"^\| \[(\d{4})\]\(([\w.-]+)\) \| (.+?) \| (.+) \|$", re.MULTILINE)


def faults(text: str) -> list[str]:
    """The faults of a record's text: its title, status, parts and length."""
    found = [] if TITLE.fullmatch(text.partition("\n")[0]) else ["no title such as '# 0001 Package layers'"]
    if not STATUS.search(text):
        found.append("no line 'Status: accepted' or 'Status: superseded by [0001](0001-name.md)'")
    found += [f"no {part}" for part in PARTS if not re.search(rf"^(## {part}$|\*\*{part}\.\*\*)", text, re.MULTILINE)]
    words = len(text.split())
    return [*found, *([f"{words} words, at most {MOST_WORDS}"] if words > MOST_WORDS else [])]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_each_record_has_its_parts_and_is_short(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


def test_there_are_few_records() -> None:
    assert 0 < len(RECORDS) <= MOST_RECORDS, "merge the new record into the record of its subject"


def test_a_number_names_one_record() -> None:
    numbers = [path.name[:4] for path in RECORDS]
    assert len(set(numbers)) == len(numbers)
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in RECORDS]
    assert [title[2:6] for title in titles] == numbers


def test_the_index_lists_every_record_by_its_title() -> None:
    rows = ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    titles = [TITLE.match(path.read_text(encoding="utf-8")) for path in RECORDS]
    assert [(number, name, title) for number, name, title, _ in rows] == [
        (title[1], path.name, title[2]) for path, title in zip(RECORDS, titles, strict=True) if title
    ]
    decisions = [decision for *_, decision in rows]
    assert all(decision.endswith(".") for decision in decisions)
    assert len(set(decisions)) == len(decisions)


def test_each_fault_is_found() -> None:
    text = "# 0001 Package layers\n\nStatus: accepted.\n\n## Context\n\na\n\n## Decision\n\nb\n\n## Consequences\n\nc\n"
    assert faults(text) == []
    assert faults(text.replace("accepted", "superseded by [0002](0002-b.md)")) == []
    assert len(faults(text.replace("0001 ", ""))) == 1
    assert len(faults(text.replace("Status: accepted", "Status: old"))) == 1
    assert len(faults(text.replace("## Decision", "## Rule"))) == 1
    assert len(faults(text + "word " * MOST_WORDS)) == 1
