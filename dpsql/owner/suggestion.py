"""Draft of a schema file: tables, columns with types, and open decisions. Nothing else is taken from the data.

A column's type and format are the first of fixed lists that all its cells fit (`dpsql.owner.recognition`). The draft
thus reveals the common format of all cells, and no extreme, value or count: files with the same names, types and
formats give the same text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema, as_written
from dpsql.executors.base import engine_of
from dpsql.executors.pandas.engine import PANDAS
from dpsql.owner.cell_checks import check_readable
from dpsql.owner.recognition import (
    Proposal,
    proposal_of_cells,
    proposal_of_objects,
    proposal_of_stored,
    type_of_cells,
)
from dpsql.schema.argument_names import unknown_argument
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, StoredColumn
from dpsql.schema.text_format import (
    LINES_ENDINGS,
    TEXT_ENDINGS,
    TEXT_WORDS,
    TextFormat,
    json_text,
    words_in_toml,
)
from dpsql.session.tables.paths import table_at
from dpsql.session.tables.table import as_table
from dpsql.sources.files import kind_of, stem_of
from dpsql.sources.json_lines import names_in
from dpsql.sources.stored import DATABASE_ENDINGS, stored_files
from dpsql.sources.text_files import mended_format

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PEOPLE = frozenset(
    {"id", "person", "people", "customer", "patient", "user", "client", "subject", "employee", "member"}
)
_NUMBERS = ("id", "no", "nr", "key")
_HEAD = """\
# Begun by dpsql init. Column types were read from the cells: check each. Nothing else in this file was taken from the
# data, and nothing should be. Bounds, keys and limits are what you know without looking: a bound that is read off the
# rows would itself tell something about a person.
#
# What is spent will be kept beside this file. Keep it out of version control, by these lines in .gitignore:
#   *.ledger
#   *.ledger-journal

neighbours = "unbounded"  # protects whether somebody is in the tables at all

[budget]
# epsilon = ...  # TODO how much may all answers together tell about one person? Until it is said, nothing is answered
# delta = ...
"""


_NAMES_TOO = """\
# The names of these columns were read from the lines too: check each, and leave out what only some rows have.
"""


def suggest_schema(data: object, name: str = "data", **text: Any) -> str:
    """Draft a schema file for a table, as TOML to be completed: types, `# TODO bounds`, and comments that guess units
    from names.

    The draft contains no bound, key, limit or count.

    Parameters
    ----------
    data : DataFrame, another source of a Session, or path
        A source whose stored types are used (for Python objects the types of the cells), or the path of a file.
    name : str
        The table's name.
    text
        The format of a text file (delimiter, skip and so on, as in `Table`). Settings that its header reveals are
        added, to be checked.

    Raises
    ------
    InvalidSchema, InvalidArgument
    """
    words = _words(text)
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        return "\n".join([_HEAD, _of_file(path, path.parent, name if name != "data" else None, words)])
    if text:
        raise InvalidArgument(f"{next(iter(text))}= is of text files.", hint="Leave it out.")
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"name must be the name of a table, got {as_written(name)}.")
    source = as_table(data).frame
    columns = [
        (each.name, proposal_of_objects(source[each.name]) if each.type is Type.OBJECT else proposal_of_stored(each))
        for each in (engine_of(source) or PANDAS).columns(source)
    ]
    return "\n".join([_HEAD, _section(name, None, columns)])


def init(files: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str] | None = None, **text: Any) -> Path:
    """Write the draft of a schema file for data files, and return its path. Existing files are not overwritten.

    Parameters
    ----------
    files : sequence of str or Path
        The data files.
    output : str or Path, optional
        By default beside the first file: `people.toml` for `people.csv`, `dpsql.toml` for several files.
    text
        As in `suggest_schema`.

    Raises
    ------
    InvalidArgument, InvalidSchema
    """
    words = _words(text)
    paths = [Path(each) for each in files]
    if not paths:
        raise InvalidArgument("no file to begin with.", hint="Name a file: dpsql init people.csv.")
    names = [stem_of(path) for path in paths]
    twice = next((name for name in names if [other.casefold() for other in names].count(name.casefold()) > 1), None)
    if twice is not None:
        raise InvalidArgument(f'two files give a table "{twice}".', hint="Rename one of them.")
    target = paths[0].parent / (f"{names[0]}.toml" if len(paths) == 1 else "dpsql.toml")
    target = target if output is None else Path(output)
    if target.exists():  # before a long reading; checked again below, in case of a race
        raise _taken(target)
    content = "\n".join([_HEAD, *(_of_file(path, target.parent, words=words) for path in paths)])
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        raise InvalidArgument(f"{target} cannot be written: {error.strerror}.") from None
    return target


def _taken(target: Path) -> InvalidArgument:
    return InvalidArgument(f"there is a file {target} already, and it stays.", hint="Name another: --output FILE.")


def _words(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format settings of text files. Raises InvalidArgument, InvalidSchema."""
    unknown = next((word for word in text if word not in TEXT_WORDS), None)
    if unknown is not None:
        raise unknown_argument(unknown, tuple(TEXT_WORDS))
    words = {word: list(value) if isinstance(value, tuple) else value for word, value in text.items()}
    TextFormat.of("the text:", words)
    return words


def _of_file(path: Path, folder: Path, name: str | None = None, words: Mapping[str, Any] | None = None) -> str:
    """Return the section of a data file's table, or the sections of a database; its path is relative to the folder."""
    where = os.path.relpath(path.absolute(), folder.absolute())
    if path.suffix.casefold() in DATABASE_ENDINGS:
        return "\n".join(_of_database(path, where))
    stored = stored_files(path)
    if stored is not None:
        columns = [(each.name, proposal_of_stored(each)) for each in _columns_of(stored)]
    else:
        return _of_text(path, where, name or stem_of(path), words or {})
    return _section(name or stem_of(path), where, columns)


def _of_text(path: Path, where: str, name: str, words: Mapping[str, Any]) -> str:
    """Return the section of a text file or JSON lines."""
    named = names_in(path) if kind_of(path) in LINES_ENDINGS else []
    form = TextFormat.of(f"{path.name}:", words)
    if kind_of(path) in TEXT_ENDINGS:
        form = mended_format(path, form)
    frame, _, _ = table_at(path, Declaration.of(types=dict.fromkeys(named, "text")), form)
    columns = [(str(label), proposal_of_cells(frame[label])) for label in frame.columns]
    kinds = [(name, Type.TEXT if proposal.words else proposal.type) for name, proposal in columns]
    check_readable(path, form, frame, kinds)
    if named:
        return _NAMES_TOO + _section(name, where, columns)
    doubts = "" if form.header is not None else _doubts(path.name, [label for label, _ in columns])
    found = {word: value for word, value in form.words.items() if words.get(word) != value}
    lines = [
        f"{words_in_toml({word: value})}{'  # check: read from the first line' if word in found else ''}"
        for word, value in form.words.items()
    ]
    return doubts + _section(name, where, columns, more=lines)


def _doubts(file: str, names: Sequence[str]) -> str:
    """Return doubts about a header. Raises InvalidSchema if all its cells look like values: it is then the first row,
    which a schema file must not contain."""
    values = [name for name in names if type_of_cells(pd.Series([name])) is not Type.TEXT]
    if len(values) == len(names):
        raise InvalidSchema(
            f"{file}: its first line holds numbers, dates or truth values alone, so it is a row and no header.",
            hint='Put the names in front, or write the file by hand, with header = ["age", "city"].',
        )
    doubts = "# TODO some of these columns are named like values. Is the first line of the file a row, and no header?\n"
    return doubts if values else ""


def _of_database(path: Path, where: str) -> Iterator[str]:
    """Yield a section for each table of a database. Raises InvalidSchema if there is none."""
    from dpsql.executors.duckdb.catalogue import tables_in  # most files are not databases

    tables = tables_in(path)
    if not tables:
        raise InvalidSchema(f"{path.name} has no table.")
    names = [table.rpartition(".")[2].casefold() for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidSchema(f'{path.name} has two tables "{twice}".', hint="Name one at a time in a file of your own.")
    for table in tables:
        columns = [(each.name, proposal_of_stored(each)) for each in _columns_of(stored_files(path, table))]
        yield _section(table.rpartition(".")[2], where, columns, table)


def _columns_of(source: object) -> Iterable[StoredColumn]:
    engine = engine_of(source)
    if engine is None:
        raise InvalidSchema("no engine reads this source.")
    return engine.columns(source)


def _section(
    name: str,
    path: str | None,
    columns: Sequence[tuple[str, Proposal]],
    table: str | None = None,
    more: Sequence[str] = (),
) -> str:
    lines = [f"[tables.{_key(name)}]"]
    lines += [] if path is None else [f"path = {json_text(path)}"]
    lines += [] if table is None else [f"table = {json_text(table)}"]
    lines += more
    lines.append('# version = "1"  # name the data as they are, and anew when they change: answers are then kept')
    guesses = [column for column, proposal in columns if not proposal.type.opaque and may_name_people(column)]
    lines += [f"# unit = {json_text(each)}  # TODO whose row is it? Guessed by the name" for each in guesses]
    if not guesses:
        lines.append("# unit = ...  # TODO whose row is it?")
    lines.append('# unit = "row"  # where no person has two rows')
    limit = "how many rows of a person count; choose a limit that most people stay below"
    lines += [f"# max_rows = ...  # with a column as unit: {limit}", ""]
    lines.append(f"[tables.{_key(name)}.columns]")
    return "\n".join([*lines, *(_line(column, proposal) for column, proposal in columns), ""])


def _line(column: str, found: Proposal) -> str:
    kind = found.type
    if kind.opaque:
        return f"# {_key(column)}: of a type that has no operations here"
    words = "".join(f", {word} = {_word(value)}" for word, value in found.words.items())
    todo = {Type.TEXT: "keys = [...] where its groups are public", Type.BOOLEAN: ""}.get(kind, "TODO bounds")
    checks = "; ".join(each for each in ("check the type", found.doubt, todo) if each)
    return f'{_key(column)} = {{ type = "{kind}"{words} }}  # {checks}'


def _word(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return json_text(value)
    return json_text(value[0] if len(value) == 1 else list(value))


def may_name_people(column: str) -> bool:
    """Return whether a column may identify the privacy unit, judging by its name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).casefold()
    parts = [part for part in re.split(r"[^a-z0-9]+", words) if part]
    return (len(parts) > 1 and parts[-1] in _NUMBERS) or (len(parts) == 1 and parts[0] in _PEOPLE)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json_text(name)
