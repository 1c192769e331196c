"""All mistakes of an owner's file at once, with table, setting and line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import DPSQLError, InvalidSchema
from dpsql.owner import check
from dpsql.owner.toml_lines import lines_of
from dpsql.shell.cli import main

ROOT = Path(__file__).parent.parent.parent
BAD = """\
neighbours = "near"
colour = 1
[budget]
epsilon = -1
delta = 2
accountant = "magic"

[tables.p]
path = "p.csv"
unit = "persn_id"
max_rows = 0
unique = ["nix"]
[tables.p.columns]
age = { type = "integr", bounds = [3, 1] }
agee = { type = "integer" }
born = { keys = [
  "a",
  "a" ] }
zip = 3
seen = { typ = "date" }

[tables.q]
path = "nowhere.csv"
max_rows = 3
[tables.r]
public = 3
"""
PLACES = [
    (1, "", "neighbours"),
    (2, "", "colour"),
    (4, "", "budget.epsilon"),
    (5, "", "budget.delta"),
    (6, "", "budget.accountant"),
    (10, "p", "unit"),
    (11, "p", "max_rows"),
    (12, "p", "unique"),
    (14, "p", "age.bounds"),
    (14, "p", "age.type"),
    (15, "p", "agee"),
    (16, "p", "born.keys"),
    (19, "p", "zip"),
    (20, "p", "seen.typ"),
    (22, "q", ""),
    (23, "q", "path"),
    (26, "r", "public"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.csv").write_text("person_id,age,zip,born,seen\n1,30,x,2020-01-01,2020-01-01\n")
    return tmp_path


def places(folder: Path, text: str) -> list[tuple[int, str, str]]:
    (folder / "d.toml").write_text(text)
    return [(each.line, each.table, each.key) for each in check(folder / "d.toml")]


def test_all_are_told_at_once(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert places(folder, BAD) == PLACES
    assert main(["check", str(folder / "d.toml")]) == 2
    shown = capsys.readouterr().out
    assert 'line 10, table p, unit: unit: column "persn_id" is not in p. Did you mean "person_id"?' in shown
    assert shown.endswith("d.toml: 17 mistakes\n")
    assert not list(folder.glob("*.ledger"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[tables.p]\npath = "p.csv"\nunit = "person_id -> q.id"\nmax_rows = 2\n', (3, "p", "unit")),
        ("[budget]\ndelta = 0.1\n", (1, "", "budget")),
        ("[budget]\nepsilon = 1\ndelta = 1e-6\nconversion_delta = 1e-3\n", (1, "", "budget")),
        ("[budget]\nepsilon = 1\n[budget.analysts.ann]\nepsilon = 0\n", (3, "", "budget.analysts.ann")),
        ("[budget]\nepsilon = 1\n[budget.analysts.ann]\nepsilon = 2\n", (1, "", "budget")),
        ('[tables.p]\nneighbours = "bounded"\n[tables.q]\nneighbours = "unbounded"\n', (4, "q", "neighbours")),
        (
            '[tables.p]\npath = "p.csv"\n[tables.p.columns]\nborn = { bounds = [1, 2], type = "date" }\n',
            (4, "p", "born"),
        ),
        (
            '[tables.p]\npath = "p.csv"\n[tables.p.columns.age]\ntype = "integer"\nbounds = [1]\n',
            (5, "p", "age.bounds"),
        ),
        ("x = = 2\n", (1, "", "")),
        ("budget = 3\n", (1, "", "budget")),
        ("tables = [1]\n", (1, "", "tables")),
        ('[tables.p]\npath = "p.csv"\ndelimiter = "ab"\n', (3, "p", "delimiter")),
        ('[tables]\np = { path = "p.csv", public = true, unit = "person_id" }\n', (2, "p", "")),
        ('engine = "abacus"\n', (1, "", "engine")),
    ],
)
def test_each_has_its_place(text: str, place: tuple[int, str, str], folder: Path):
    found = places(folder, text)
    if place == (4, "q", "neighbours"):
        assert len(found) == 1  # whichever of the two is named
        return
    assert found == [place]


@pytest.mark.parametrize("file", ["adult_sample/adult.toml", "examples/shop/shop.toml", "examples/tpch/tpch.toml"])
def test_files_that_are_right_have_none(file: str):
    assert check(ROOT / file) == ()


def test_no_row_is_read(folder: Path):
    (folder / "p.csv").write_bytes(b"person_id,age\n" + b"\xff\xfe,'\"" * 1000)
    text = (
        '[tables.p]\npath = "p.csv"\nunit = "person_id"\nmax_rows = 1\n[tables.p.columns]\nage = { type = "integer" }\n'
    )
    assert places(folder, text) == []


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(InvalidSchema):
        check(tmp_path / "nowhere.toml")


def test_it_is_told_nothing_where_a_session_opens_and_something_where_none_does(folder: Path):
    """Settings left out and spoiled at random: the check and a session agree on whether the file is right."""
    chance = random.Random(3)
    lines = [
        *('neighbours = "bounded"', "[budget]", "epsilon = 1", "delta = 1e-6", "[tables.p]", 'path = "p.csv"'),
        *('unit = "person_id"', "max_rows = 2", 'unique = ["zip"]', "[tables.p.columns]", "person_id = {}"),
        *('age = { type = "integer", bounds = [0, 9] }', 'zip = { keys = ["x", "y"] }', "born = { nullable = false }"),
    ]
    spoiled = [
        "max_rows = -1",
        'unit = "nix"',
        "age = { bounds = [9, 0] }",
        "delta = 5",
        "colour = 2",
        "zip = { keys = 3 }",
    ]
    right = 0
    for _ in range(120):
        kept = [line for line in lines if line.startswith("[") or chance.random() < 0.8]
        if chance.random() < 0.6:
            kept.insert(chance.randrange(len(kept) + 1), chance.choice(spoiled))
        (folder / "d.toml").write_text("\n".join(kept))
        mistakes = check(folder / "d.toml")
        opens = _opens(folder / "d.toml")
        assert opens is not bool(mistakes), (kept, mistakes)
        right += opens
    assert 10 < right < 110


def _opens(file: Path) -> bool:
    try:
        schema = dpsql.Schema.from_toml(file)
        dpsql.Session(schema=schema, budget=None if schema.budget else dpsql.Budget(1), ledger=False)
    except DPSQLError:
        return False
    return True


def test_lines_of_statements():
    text = '# a\u2028b\x85\r\na = 1\n"b c".d = """\n[x]\n"""\n\n[e.f]\ng = [\n 1, # two ]\n 2,\n]\nh = {i = 1}\n[[k]]\n'
    found = lines_of(text.replace("\r\n", "\n"))
    expected = {("a",): 2, ("b c", "d"): 3, ("e", "f"): 7, ("e", "f", "g"): 8, ("e", "f", "h", "i"): 12}
    assert {path: found[path] for path in expected} == expected


def test_a_long_list_is_read_fast():
    text = "keys = [\n" + "\n".join(f'  "{number}",' for number in range(20_000)) + "\n]\nlast = 1\n"
    assert lines_of(text)["last",] == 20_003
