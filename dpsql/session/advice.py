"""Hints of errors in the spelling of the place where they are read.

Errors use the library's spelling: `epsilon=3`, `keys={"city": [...]}`. A command line spells these `--epsilon 3`, and
keys as in the owner's file. Only the spelling changes, never the advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum

from dpsql.errors import DPSQLError
from dpsql.schema.columns import CELL_WORDS


class Place(Enum):
    """Place where an error is read: prefix of option names, command that lists earlier answers, and whether tables are
    declared in an owner's file."""

    COMMAND_LINE = ("--", "dpsql ledger show", True)
    PROMPT = (".", ".ledger", True)
    NOTEBOOK = ("--", "%dpsql ledger", False)
    PAGE = ("", "", True)


_NUMBER = r"([\d.]+(?:e[+-]?\d+)?)"
_OPTIONS = "epsilon|delta|rho|error"
_TRUTH = {"True": "true", "False": "false"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def error_text(error: DPSQLError, place: Place) -> str:
    """Return the error as `ClassName: message`, with its hint in the spelling of the place."""
    hint = error.about.get("hint elsewhere", error.hint)
    return f"{type(error).__name__}: {error.told(reworded(hint, place))}"


def reworded(hint: str, place: Place) -> str:
    """Return the hint with options in the spelling of the place, and with declarations in TOML if the place has an
    owner's file."""
    dash, ledger, has_file = place.value
    if ledger:
        hint = re.sub(r"\b([Rr]euse an earlier answer)\b", rf"\1 ({ledger})", hint)
    hint = re.sub(rf"\b({_OPTIONS})={_NUMBER}", rf"{dash}\1 \2", hint)
    hint = re.sub(rf"\b({_OPTIONS})=(?![\w.])", rf"{dash}\1", hint)
    hint = re.sub(r'\b(mechanism|accountant)="?\'?(\w+)"?\'?', rf"{dash}\1 \2", hint)
    if place is Place.NOTEBOOK:
        hint = re.sub(r'params=\{"(\w+)": [^}]*\}', r"a variable \1", hint)
        return hint.replace(" (in Python as a parameter too: params={...})", "")
    hint = re.sub(r'params=\{"(\w+)": [^}]*\}', rf"{dash}param \1=VALUE", hint)
    hint = hint.replace(
        " (in Python as a parameter too: params={...})", f" (or as a parameter, {dash}param name=value)"
    )
    return in_toml(hint) if has_file else hint


def in_toml(hint: str, *, in_file: bool = False) -> str:
    """Return the hint with its declarations as in an owner's file. in_file: the hint is about that file."""
    for pattern, write in _DECLARED:
        hint = re.sub(pattern, write, hint)
    if not in_file:
        return hint
    hint = re.sub(r"\((lower|-?[\d.]+), (upper|-?[\d.]+)\)", r"[\1, \2]", hint.replace(" in the schema file", ""))
    return re.sub(r"\b(True|False)\b", lambda found: _TRUTH[found[1]], hint)


def _name(text: str) -> str:
    return text if _BARE.fullmatch(text) else f'"{text}"'


def _in_file(declared: Iterable[tuple[str, str]], words: str) -> str:
    """Format column declarations as in an owner's file."""
    lines = (f"{_name(name)} = {{ {words.format(value)} }}" for name, value in declared)
    return f"{', '.join(lines)} in the schema file"


_DECLARED: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r'\bbounds=\{((?:"[^"]+": \([^()]*\)(?:, )?)+)\}',
        lambda found: _in_file(re.findall(r'"([^"]+)": \(([^()]*)\)', found[1]), "bounds = [{}]"),
    ),
    (r'\bbounds="auto"', lambda _: 'bounds = "auto" in the schema file'),
    (
        r'\b(keys)=\{"([^"]+)": (\[[^]]*\])\}',
        lambda found: f"{_name(found[2])} = {{ keys = {found[3]} }} in the schema file",
    ),
    (
        r'\btypes=\{"([^"]+)": ("\w+")\}',
        lambda found: f"{_name(found[1])} = {{ type = {found[2]} }} in the schema file",
    ),
    (
        rf'\b({"|".join(CELL_WORDS)})=\{{"([^"]+)": ("[^"]*"|\[[^]]*\])\}}',
        lambda found: f"{_name(found[2])} = {{ {found[1]} = {found[3]} }} in the schema file",
    ),
    (
        r'\bnullable=\{((?:"[^"]+": (?:True|False)(?:, )?)+)\}',
        lambda found: _in_file(
            [(name, _TRUTH[word]) for name, word in re.findall(r'"([^"]+)": (True|False)', found[1])], "nullable = {}"
        ),
    ),
    (r'\bmax_matches=\{"([^"]+)": (\d+)\}', lambda found: f"max_matches = {{ {_name(found[1])} = {found[2]} }}"),
    (r"\b(unit|unique|partition|version)=(\"[^\"]*\"|\[[^]]*\])", lambda found: f"{found[1]} = {found[2]}"),
    (r"\b(public)=(True|False)", lambda found: f"{found[1]} = {_TRUTH[found[2]]}"),
    (r"\b(max_rows|max_groups|max_rows_per_group|people)=(\d[\d_]*)", lambda found: f"{found[1]} = {found[2]}"),
)
