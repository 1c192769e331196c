"""What errors advise, as it is written where they are read."""

import re
from pathlib import Path

import pytest

from dpsql.errors import InvalidPrivacyParameter, InvalidSchema
from dpsql.session.advice import Place, error_text, reworded
from dpsql.session.owner_file import Schema

GOLDEN = (Path(__file__).parents[1] / "sql" / "refusals.golden").read_text(encoding="utf-8")
HINTS = sorted({line.strip() for line in GOLDEN.split("\n") if line.startswith("  ") and "^" not in line})
PYTHON = re.compile(r"\b[a-z_]+=\S|: \[\.\.\.\]\}|params|\bdpsql\.[A-Z]|\bTrue\b|\bFalse\b")
OWN_PLACES = [Place.COMMAND_LINE, Place.PROMPT]


@pytest.mark.parametrize("place", OWN_PLACES)
def test_no_advice_of_any_refusal_is_pythons_where_nobody_writes_python(place: Place):
    assert sum(PYTHON.search(hint) is not None for hint in HINTS) > 40, "the golden texts are not read"
    about_python = ("Write epsilon=1, without quotes.", 'Write params={"low": 20}.')  # of values no command line gives
    left = {hint: reworded(hint, place) for hint in HINTS if hint not in about_python}
    left = {hint: text for hint, text in left.items() if PYTHON.search(re.sub(r"param \w+=\w+", "", text))}
    assert not left


def test_in_a_notebook_tables_are_declared_in_python():
    changed = {hint for hint in HINTS if reworded(hint, Place.NOTEBOOK) != hint}
    assert changed
    assert not any("bounds=" in hint and "delta=" not in hint for hint in changed)


@pytest.mark.parametrize(
    ("hint", "command_line", "prompt", "notebook"),
    [
        (
            "with epsilon=0.4 (n ±7), reuse an earlier answer, or",
            "with --epsilon 0.4 (n ±7), reuse an earlier answer (dpsql ledger show), or",
            "with .epsilon 0.4 (n ±7), reuse an earlier answer (.ledger), or",
            "with --epsilon 0.4 (n ±7), reuse an earlier answer (%dpsql ledger), or",
        ),
        ("Add epsilon=1, say.", "Add --epsilon 1, say.", "Add .epsilon 1, say.", "Add --epsilon 1, say."),
        ("allow delta=1e-6: few", "allow --delta 1e-6: few", "allow .delta 1e-6: few", "allow --delta 1e-6: few"),
        (
            "with epsilon= instead",
            "with --epsilon instead",
            "with .epsilon instead",
            "with --epsilon instead",
        ),
        ('use mechanism="laplace".', "use --mechanism laplace.", "use .mechanism laplace.", "use --mechanism laplace."),
        ('Pass params={"low": ...}.', "Pass --param low=VALUE.", "Pass .param low=VALUE.", "Pass a variable low."),
        (
            'List them: keys={"home town": [...]} (costs no delta',
            'List them: "home town" = { keys = [...] } in the schema file (costs no delta',
            'List them: "home town" = { keys = [...] } in the schema file (costs no delta',
            'List them: keys={"home town": [...]} (costs no delta',
        ),
        (
            'Add bounds={"pid": (0, 100)}, or write',
            "Add pid = { bounds = [0, 100] } in the schema file, or write",
            "Add pid = { bounds = [0, 100] } in the schema file, or write",
            'Add bounds={"pid": (0, 100)}, or write',
        ),
        (
            'Declare it: unique=["n"] on codes, or max_matches={"n": 3}, public=True.',
            'Declare it: unique = ["n"] on codes, or max_matches = { n = 3 }, public = true.',
            'Declare it: unique = ["n"] on codes, or max_matches = { n = 3 }, public = true.',
            'Declare it: unique=["n"] on codes, or max_matches={"n": 3}, public=True.',
        ),
    ],
)
def test_the_same_advice_in_three_places(hint: str, command_line: str, prompt: str, notebook: str):
    places = (Place.COMMAND_LINE, Place.PROMPT, Place.NOTEBOOK)
    assert [reworded(hint, place) for place in places] == [command_line, prompt, notebook]


def test_the_message_and_its_place_stay():
    error = InvalidPrivacyParameter("epsilon=3 is no word here.", hint="Add epsilon=1.")
    text = "InvalidPrivacyParameter: epsilon=3 is no word here.\n  Add --epsilon 1."
    assert error_text(error, Place.COMMAND_LINE) == text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[tables.p.columns]\nage = { bounds = 5 }", "a pair [lower, upper]"),
        ("[tables.p.columns]\nage = { bounds = [5, 1] }", "Did you mean [1, 5]?"),
        ('[tables.p.columns]\nage = { nullable = "no" }', "nullable must be true or false"),
        ('public = "yes"', "public must be true or false"),
        ("unique = 5", 'unique = [["country", "year"]]'),
        ("max_matches = 4", "max_matches = { age = 3 }"),
        ("partition = 4", 'partition = "day"'),
        ("unit = 5", 'unit = "person_id"'),
    ],
)
def test_an_owners_file_is_advised_in_its_own_words(tmp_path: Path, lines: str, message: str):
    file = tmp_path / "p.toml"
    file.write_text(f'[tables.p]\npath = "p.csv"\n{lines}\n', encoding="utf-8")
    with pytest.raises(InvalidSchema) as refused:
        Schema.from_toml(file)
    assert message in str(refused.value)
    assert not PYTHON.search(refused.value.hint)
