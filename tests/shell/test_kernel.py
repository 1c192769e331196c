"""The magics in a real kernel: large spends, and a budget that a new kernel finds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import dpsql
from dpsql.accounting import read_ledger

TOML = """
[budget]
epsilon = 3

[tables.people]
path = "people.csv"
version = "1"
"""
OPEN = """import dpsql
session = dpsql.Session(schema=dpsql.Schema.from_toml("people.toml"))
%load_ext dpsql"""
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(["city", *["Lyon"] * 400]))
    (tmp_path / "people.toml").write_text(TOML)
    return tmp_path


def ran(folder: Path, cells: Sequence[str]) -> list[str]:
    """What each cell showed, in a kernel of its own: its text, or its error as it stands there."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, kernel_name="python3", timeout=120, allow_errors=True, resources=place)
    client.execute(env={**os.environ, "PYTHONPATH": str(Path(dpsql.__file__).parents[1])})
    return ["\n".join(_text(output) for output in cell.outputs) for cell in notebook.cells]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data["text/plain"])


def test_a_large_spend_needs_a_word_and_a_new_kernel_finds_what_was_spent(folder: Path):
    first = ran(
        folder,
        [
            OPEN,
            f"%dpsql --epsilon 2 {COUNT}",
            f"%dpsql --epsilon 2 --yes-up-to 1 {COUNT}",
            f"%dpsql --epsilon 2 --yes --max-epsilon 1 {COUNT}",
            f"%dpsql --epsilon 2 --yes kept= << {COUNT}",
            f"%%dpsql --epsilon 0.9\n{COUNT} WHERE city = 'Lyon'",
            f"%%dpsql --epsilon 0.9 --yes-up-to 0.9\n{COUNT} WHERE city = 'Lyon'",
            f"%dpsql --epsilon 0.5 --yes {COUNT} WHERE city = 'Nice'",
        ],
    )
    for refused in (first[1], first[2], first[5]):
        assert refused.startswith("ConfirmationRequired: this query would spend epsilon")
        assert "Run the cell with --yes" in refused
        assert "Traceback" not in refused
    assert first[3].startswith("InvalidPrivacyParameter: ")
    assert "spent epsilon 2 · left epsilon 1 of 3" in first[4]
    assert "spent epsilon 0.9 · left epsilon 0.1 of 3" in first[6]
    assert first[7].startswith("BudgetExceeded: ")  # which comes before any question
    assert [str(entry.cost) for entry in read_ledger(folder / "people.ledger")] == ["epsilon 2", "epsilon 0.9"]

    second = ran(
        folder,
        [
            OPEN,
            "%dpsql budget",
            f"%dpsql --epsilon 2 {COUNT}",
            f"%dpsql --epsilon 1 {COUNT} WHERE city = 'Lyon'",
            "evil, many = \"x' OR 1 = 1 --\", ['Lyon']",
            f"kept = %dpsql --epsilon 0.01 {COUNT} WHERE city = :evil\nprint(abs(kept.item()) < 4000)",
            f"%dpsql --dry-run {COUNT} WHERE city IN :many",
            f"%dpsql --dry-run {COUNT} WHERE city = {{evil}}",
            "session.query('SELECT 1 +', epsilon=1)",
        ],
    )
    assert "left    epsilon 0.1" in second[1]
    assert "answered before: spent nothing · left epsilon 0.1 of 3" in second[2]
    assert second[2].splitlines()[:4] == first[4].splitlines()[:4]
    assert second[3].startswith("BudgetExceeded: this query costs epsilon 1 but 0.1 is left")
    assert second[5] == "True\n"  # as a constant, of which there is no row
    assert second[6].startswith("InvalidParameter: :many cannot be a list.")
    assert second[7].startswith("UnsupportedSQL: structures ({...})")  # a variable is never pasted into the text
    assert second[8].startswith("SQLSyntaxError: ")
    assert "at line 1: session.query('SELECT 1 +', epsilon=1)" in second[8]
    assert "Traceback" not in second[8]
    assert [entry.label for entry in read_ledger(folder / "people.ledger")][2:] == [f"{COUNT} WHERE city = :evil"]
