"""Open decisions in a schema file: undecided units, and TODO comments.

A comment is open until its setting is present, or the comment is deleted. Its setting is the one commented out before
it (`# unit = "person_id"  # TODO ...`), or named after the word TODO (`TODO bounds`).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.owner.toml_lines import Path, lines_of
from dpsql.schema.argument_names import checked_names
from dpsql.schema.frozen import dataclass

_COMMENT = re.compile(r"""(?:[^"'#]|"(?:[^"\\]|\\.)*"|'[^']*')*?#(?P<text>.*)""")
_TODO = re.compile(r"\bTODO\b:?\s*(.*)")
_SETTING = re.compile(r"#\s*(\w+)\s*=")
_SETTLED_BY = {"bounds": ("bounds", "keys"), "keys": ("keys",)}
"""The facts of a column that settle a comment about a fact."""
WHOSE_ROW = (
    'whose row is it? Write unit = "person_id" (the column that tells), a path to another table\'s unit, or '
    'unit = "row" where no person has two rows; or public = true where no row is anybody\'s'
)


@dataclass(frozen=True)
class Todo:
    """An open decision in a schema file. table: the table, if any; key: the dotted setting, if any; line: from 1."""

    line: int
    table: str
    key: str
    text: str

    def __str__(self) -> str:
        place = (
            [f"line {self.line}"] + ([f"table {self.table}"] if self.table else []) + ([self.key] if self.key else [])
        )
        return f"{', '.join(place)}: TODO {self.text}"


@checked_names
def open_todos(path: str | os.PathLike[str]) -> tuple[Todo, ...]:
    """Return the open decisions of a schema file by line: private tables without a `unit`, and TODO comments whose
    setting is missing. Raises InvalidSchema if the file is missing or not TOML."""
    file = File(path)
    try:
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n")
        content = tomllib.loads(text)
    except OSError:
        raise InvalidSchema(f"no schema file {file} that can be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSchema(f"{file.name} is not TOML: {error}.") from None
    lines = lines_of(text)
    by_place: dict[tuple[str, str, int], Todo] = {}
    for todo in (*_comments(text, content, lines), *_units(content, lines)):
        place = (todo.table, todo.key, 0 if todo.key else todo.line)
        by_place.setdefault(place, todo)
    return tuple(sorted(by_place.values(), key=lambda each: each.line))


def check_finished(path: str | os.PathLike[str]) -> None:
    """Raise InvalidSchema for a schema file with an open TODO about a unit, as written by `dpsql init`. Without any
    mention of a unit each row is one, as in a Session."""
    begun = [each for each in open_todos(path) if each.key == "unit" and each.text != WHOSE_ROW]
    if begun:
        raise InvalidSchema(
            f"{File(path).name}, line {begun[0].line}: the unit of table {begun[0].table} is not decided.",
            hint=f"Decide {WHOSE_ROW}.\nThen: dpsql check {path}",
        )


def _units(content: Mapping[str, Any], lines: Mapping[Path, int]) -> Iterator[Todo]:
    tables = content.get("tables", {})
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        if isinstance(table, Mapping) and table.get("public") is not True and "unit" not in table:
            yield Todo(lines.get(("tables", name), 1), name, "unit", WHOSE_ROW)


def _comments(text: str, content: Mapping[str, Any], lines: Mapping[Path, int]) -> Iterator[Todo]:
    settings = {line: path for path, line in sorted(lines.items(), key=lambda each: len(each[0]))}
    section: Path = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if number in settings and line.lstrip().startswith("["):
            section = settings[number]
        comment = _COMMENT.match(line)
        todo = None if comment is None else _TODO.search(comment["text"])
        if todo is None:
            continue
        place, settled_by = _subject(line, todo[1], settings.get(number, section), section)
        within = _at(content, place[:-1])
        if any(word in within for word in settled_by) or (settled_by == ("unit",) and within.get("public")):
            continue
        table = place[1] if len(place) > 1 and place[0] == "tables" else ""
        key = ".".join(each for each in place[2 if table else 0 :] if each != "columns")
        yield Todo(number, table, key if settled_by else "", todo[1].strip())


def _subject(line: str, text: str, setting: Path, section: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the setting that a comment is about, and the settings that settle it; none if it must be deleted. text:
    the text after TODO; setting: that of the line, or else its section."""
    commented_out = _SETTING.match(line.lstrip())
    if commented_out is not None:
        return (*section, commented_out[1]), (commented_out[1],)
    if setting[:1] == ("tables",) and setting[2:3] == ("columns",):
        fact = text.partition(" ")[0].rstrip(",.")
        settled_by = _SETTLED_BY.get(fact, ())
        return (*setting[:4], *((fact,) if settled_by else ())), settled_by
    return setting, setting[len(section) :][:1]  # an existing setting of a table or of the budget


def _at(content: Mapping[str, Any], place: Path) -> Mapping[str, Any]:
    for name in place:
        content = content.get(name, {}) if isinstance(content, Mapping) else {}
    return content if isinstance(content, Mapping) else {}
