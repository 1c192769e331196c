"""All mistakes of a schema file at once, each with its table, setting and line. Of data files, headers are read, and
rows of text until each column has a cell that fits its type.

First each setting is checked separately, by the reader that a session uses, so that errors have the same messages. Then
the settings without errors are checked together: facts of a column, settings of a table, linked tables. Thus no mistake
is reported twice, and none hides another.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path as File
from typing import Any

from dpsql.core.ledger.filters import ACCOUNTANTS
from dpsql.errors import DPSQLError, InvalidSchema
from dpsql.owner.headers import mistakes_of_headers
from dpsql.owner.toml_lines import Path, lines_of
from dpsql.schema.argument_names import checked_names
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TEXT_WORDS
from dpsql.session.owner_file import Schema

_LIMITS = ("max_rows", "max_groups", "max_rows_per_group")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True)
class Mistake:
    """An error of one setting. table: the table, if any; key: the dotted setting; line: from 1, or 0 if there is
    none."""

    line: int
    table: str
    key: str
    message: str
    hint: str = field(default="", compare=False)

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        place += [f"table {self.table}"] if self.table else []
        place += [self.key] if self.key else []
        lines = [f"{', '.join(place) or 'the file'}: {self.message}", *self.hint.split("\n")]
        return "\n  ".join(filter(None, lines))


@checked_names
def check(path: str | os.PathLike[str]) -> tuple[Mistake, ...]:
    """Return the mistakes of a schema file, in the order of its lines; empty for a valid file. Of data files it reads
    the names and types of columns, and rows of text until each column has a cell that fits its type: a column without
    such a cell is a mistake. Raises InvalidSchema if the file cannot be read."""
    file = File(path)
    try:
        text = file.read_bytes().decode("utf-8")
        content = tomllib.loads(text)
    except OSError:
        raise InvalidSchema(f"no schema file {file} that can be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        at = _AT_LINE.search(str(error))
        return (Mistake(int(at[1]) if at else 0, "", "", f"this is not TOML: {error}."),)
    lines = lines_of(text.replace("\r\n", "\n"))
    errors = dict(_errors(content, file.parent))
    mistakes = [_mistake(place, error, lines) for place, error in errors.items()]
    return tuple(sorted(mistakes, key=lambda each: (each.line, each.table, each.key)))


def _mistake(place: Path, error: DPSQLError, lines: Mapping[Path, int]) -> Mistake:
    line = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), 0)
    table = place[1] if place[0] == "tables" and len(place) > 1 else ""
    key = ".".join(each for each in place[2 if table else 0 :] if each != "columns")
    return Mistake(line, table, key, error.message, error.about.get("hint in a file", error.hint))


def _errors(content: Mapping[str, Any], folder: File) -> Iterator[tuple[Path, DPSQLError]]:
    """Yield each wrong setting with its error."""
    alone = {place: error for place, wanted in _asked_alone(content) if (error := _error(wanted, folder)) is not None}
    alone = {place: error for place, error in alone.items() if not _told_above(place, error, alone)}
    yield from alone.items()
    rest = without(content, alone)
    together: dict[Path, DPSQLError] = {}
    for place, wanted in _asked_together(rest):
        if not any(other[: len(place)] == place for other in {**alone, **together}):
            error = _error(wanted, folder)
            if error is not None:
                together[place] = error
    yield from together.items()
    rest = _kept(rest, {**together, **_shaken(rest, alone, folder)})
    whole = _error(rest, folder)
    if whole is not None:
        yield ("neighbours",) if "neighbour" in whole.message else ("tables",), whole
        return
    yield from mistakes_of_headers(Schema.from_dict(rest, folder), rest)


def _told_above(place: Path, error: DPSQLError, errors: Mapping[Path, DPSQLError]) -> bool:
    """Return whether the error of a setting in an analyst's share is already reported for the share."""
    above = errors.get(place[:3]) if place[:2] == ("budget", "analysts") and len(place) > 3 else None
    return above is not None and str(above) == str(error)


def _shaken(rest: Mapping[str, Any], alone: Mapping[Path, object], folder: File) -> dict[Path, None]:
    """Return the tables, and the budget, that became invalid by removing wrong settings, such as limits of a misspelt
    unit. Nothing is reported about them."""
    budget = {"budget": rest["budget"]} if "budget" in rest and any(place[0] == "budget" for place in alone) else {}
    of_budget: dict[Path, None] = {("budget",): None} if _error(budget, folder) is not None else {}
    names = {place[1] for place in alone if place[0] == "tables" and len(place) > 1}
    kept = {name: table for name, table in rest.get("tables", {}).items() if name in names}
    return of_budget | {
        ("tables", name): None for name, table in kept.items() if _error({"tables": {name: table}}, folder) is not None
    }


def _kept(content: Mapping[str, Any], wrong: Mapping[Path, object]) -> dict[str, Any]:
    """Return the content without mutually wrong settings; of a contradictory table its file and columns remain."""
    tables = {place[1] for place in wrong if len(place) == 2 and place[0] == "tables"}
    places = {place: None for place in wrong if place[:1] != ("tables",) or len(place) > 2}
    for name in tables:
        words = [word for word in content["tables"][name] if word not in ("path", "table", "columns", *TEXT_WORDS)]
        places |= {("tables", name, word): None for word in words}
    return without(content, places)


def _error(content: Mapping[str, Any], folder: File) -> DPSQLError | None:
    """Return the error that a session would raise for this content."""
    try:
        schema = Schema.from_dict(content, folder)
        if schema.budget is not None:
            schema.budget.filter(schema.accountant or "auto")
    except DPSQLError as error:
        return error
    return None


def _asked_alone(content: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each setting with the settings that it requires."""
    for word, value in content.items():
        if word not in ("budget", "tables") or not isinstance(value, Mapping):
            yield (word,), {word: value}
    budget, tables = content.get("budget"), content.get("tables")
    if isinstance(budget, Mapping):
        for word, value in budget.items():
            if word != "analysts" or not isinstance(value, Mapping):
                yield ("budget", word), {"budget": {"epsilon": 1, **_delta_for(word), word: value}}
                continue
            for name, share in value.items():
                yield from _of_share(name, share)
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        if not isinstance(table, Mapping):
            yield ("tables", name), {"tables": {name: table}}
            continue
        yield from _of_table(name, table)


def _of_share(name: str, share: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield an analyst's share, and each of its settings, within a budget that has room for any."""
    whole = {"epsilon": 10**9, "delta": 0.999, "accountant": ACCOUNTANTS[1]}
    yield ("budget", "analysts", name), {"budget": {**whole, "analysts": {name: share}}}
    for word, value in share.items() if isinstance(share, Mapping) else ():
        asked = {"epsilon": 1, **_delta_for(word), word: value}
        yield ("budget", "analysts", name, word), {"budget": {**whole, "analysts": {name: asked}}}


def _delta_for(word: str) -> dict[str, Any]:
    return {"delta": 0.999} if word in ("conversion_delta", "accountant") else {}


def _of_table(name: str, table: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for word, value in table.items():
        if word != "columns" or not isinstance(value, Mapping):
            needed: dict[str, Any] = {}
            if word in _LIMITS:
                needed = {"unit": "u"}
            elif word == "max_matches":
                needed = {"public": True}
            elif word == "table":
                needed = {"path": "x.duckdb"}
            yield ("tables", name, word), {"tables": {name: {**needed, word: value}}}
            continue
        for column, facts in value.items():
            if not isinstance(facts, Mapping):
                yield ("tables", name, word, column), {"tables": {name: {word: {column: facts}}}}
                continue
            for fact, said in facts.items():
                yield ("tables", name, word, column, fact), {"tables": {name: {word: {column: {fact: said}}}}}


def _asked_together(content: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the facts of each column, the settings of each table, and the budget."""
    if "budget" in content:
        yield ("budget",), {"budget": content["budget"]}
    for name, table in content.get("tables", {}).items():
        for column, facts in table.get("columns", {}).items():
            yield ("tables", name, "columns", column), {"tables": {name: {"columns": {column: facts}}}}
        yield ("tables", name), {"tables": {name: table}}


def without(content: Mapping[str, Any], places: Mapping[Path, object]) -> dict[str, Any]:
    """Return the content without the settings at these places."""
    rest = {}
    for word, value in content.items():
        if (word,) in places:
            continue
        below = {place[1:]: None for place in places if place[0] == word and len(place) > 1}
        rest[word] = without(value, below) if below and isinstance(value, Mapping) else value
    return rest
