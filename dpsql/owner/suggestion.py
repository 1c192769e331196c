"""An owner's file begun: the tables, their columns and types, and what is to be decided. Nothing else is taken from
the data.

A column's type is the first of a fixed list that all of its cells fit, so what enters is whether each cell is written
as a number, a date or so, and neither the largest, nor which, nor how many there are: two files with the same names and
types give the same text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema, as_written
from dpsql.executors.base import engine_of
from dpsql.executors.pandas.engine import PANDAS
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, Stored
from dpsql.schema.text_format import LINES_ENDINGS
from dpsql.session.paths import table_at
from dpsql.session.table import as_table
from dpsql.sources.files import kind_of, stem_of
from dpsql.sources.json_lines import names_in
from dpsql.sources.stored import DATABASE_ENDINGS, stored_files

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
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
# TODO how much may all answers together tell about one person? Until it is said here, nothing is answered.
# epsilon = ...
# delta = ...
"""


_NAMES_TOO = """\
# The names of these columns were read from the lines too: check each, and leave out what only some rows have.
"""


def suggest_schema(data: object, name: str = "data") -> str:
    """An owner's file for a table, as TOML to be completed: types, `# TODO bounds`, units guessed by name as comments.

    data: a DataFrame or another source that a Session takes, whose types are those of its storage, or the path of a
    file. name: the table's. No bound, key, limit or count is in it. Raises InvalidSchema, InvalidArgument.
    """
    if isinstance(data, str | os.PathLike):
        return "\n".join([_HEAD, _of_file(Path(data), Path(data).parent, name if name != "data" else None)])
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"name must be the name of a table, got {as_written(name)}.")
    source = as_table(data).frame
    columns = (engine_of(source) or PANDAS).columns(source)
    return "\n".join([_HEAD, _section(name, None, [(each.name, each.type) for each in columns])])


def init(files: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str] | None = None) -> Path:
    """Write an owner's file for data files, and return where: beside the first, `people.toml` for `people.csv` and
    `dpsql.toml` for several, unless `output` says. A file that is there stays as it is. Raises InvalidArgument,
    InvalidSchema."""
    paths = [Path(each) for each in files]
    if not paths:
        raise InvalidArgument("no file to begin with.", hint="Name a file: dpsql init people.csv.")
    names = [stem_of(path) for path in paths]
    twice = next((name for name in names if [other.casefold() for other in names].count(name.casefold()) > 1), None)
    if twice is not None:
        raise InvalidArgument(f'two files give a table "{twice}".', hint="Rename one of them.")
    target = paths[0].parent / (f"{names[0]}.toml" if len(paths) == 1 else "dpsql.toml")
    target = target if output is None else Path(output)
    if target.exists():  # before a long reading; told again below, where another was faster
        raise _taken(target)
    text = "\n".join([_HEAD, *(_of_file(path, target.parent) for path in paths)])
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        raise InvalidArgument(f"{target} cannot be written: {error.strerror}.") from None
    return target


def _taken(target: Path) -> InvalidArgument:
    return InvalidArgument(f"there is a file {target} already, and it stays.", hint="Name another: --output FILE.")


def _of_file(path: Path, folder: Path, name: str | None = None) -> str:
    """The section of a data file's table, or those of a database; its path as it leads there from the folder."""
    where = os.path.relpath(path.absolute(), folder.absolute())
    if path.suffix.casefold() in DATABASE_ENDINGS:
        return "\n".join(_of_database(path, where))
    stored = stored_files(path)
    if stored is not None:
        columns = [(each.name, each.type) for each in _columns_of(stored)]
    else:
        named = names_in(path) if kind_of(path) in LINES_ENDINGS else []
        frame, _, _ = table_at(path, Declaration.of(types=dict.fromkeys(named, "text")))
        columns = [(str(label), type_of_cells(frame[label])) for label in frame.columns]
        if named:
            return _NAMES_TOO + _section(name or stem_of(path), where, columns)
        return _doubts(path.name, [label for label, _ in columns]) + _section(name or stem_of(path), where, columns)
    return _section(name or stem_of(path), where, columns)


def _doubts(file: str, names: Sequence[str]) -> str:
    """What is to be asked of a header. Raises InvalidSchema where each of its cells is a value, which an owner's file
    must not hold: it is the first row."""
    values = [name for name in names if type_of_cells(pd.Series([name])) is not Type.TEXT]
    if len(values) == len(names):
        raise InvalidSchema(
            f"{file}: its first line holds numbers, dates or truth values alone, so it is a row and no header.",
            hint='Put the names in front, or write the file by hand, with header = ["age", "city"].',
        )
    doubts = "# TODO some of these columns are named like values. Is the first line of the file a row, and no header?\n"
    sign = next((sign for sign in ";\t|" if len(names) == 1 and sign in names[0]), None)
    apart = f"# TODO the header is one name. Is this between columns? Then: delimiter = {_text(sign)}\n" if sign else ""
    return (doubts if values else "") + apart


def _of_database(path: Path, where: str) -> Iterator[str]:
    """A section for each table of a database. Raises InvalidSchema where there is none."""
    from dpsql.executors.duckdb.catalogue import tables_in  # most files are no databases

    tables = tables_in(path)
    if not tables:
        raise InvalidSchema(f"{path.name} has no table.")
    names = [table.rpartition(".")[2].casefold() for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidSchema(f'{path.name} has two tables "{twice}".', hint="Name one at a time in a file of your own.")
    for table in tables:
        columns = [(each.name, each.type) for each in _columns_of(stored_files(path, table))]
        yield _section(table.rpartition(".")[2], where, columns, table)


def _columns_of(source: object) -> Iterable[Stored]:
    engine = engine_of(source)
    if engine is None:
        raise InvalidSchema("no engine reads this source.")
    return engine.columns(source)


def type_of_cells(cells: pd.Series) -> Type:
    """The first type that every cell of a text column fits; text where there are none. A number with zeros in front
    (a post code) is text."""
    texts = [text for text in pd.unique(cells.dropna()) if isinstance(text, str)]
    if not texts:
        return Type.TEXT
    fitting = (kind for kind, fits in _RULES.items() if all(map(fits, texts)))
    return next(fitting, Type.TEXT)


def _is_moment(text: str) -> bool:
    return _DAY.match(text) is not None and _reads(datetime.fromisoformat, text)


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_RULES: Mapping[Type, Callable[[str], bool]] = {
    Type.INTEGER: lambda text: _WHOLE.fullmatch(text) is not None,
    Type.REAL: lambda text: _NUMBER.fullmatch(text) is not None,
    Type.BOOLEAN: lambda text: text.casefold() in ("true", "false"),
    Type.DATE: lambda text: _DAY.fullmatch(text) is not None and _reads(date.fromisoformat, text),
    Type.TIMESTAMP: _is_moment,
}
"""The types that texts may be of, in the order in which they are tried."""


def _section(name: str, path: str | None, columns: Sequence[tuple[str, Type]], table: str | None = None) -> str:
    lines = [f"[tables.{_key(name)}]"]
    lines += [] if path is None else [f"path = {_text(path)}"]
    lines += [] if table is None else [f"table = {_text(table)}"]
    lines.append('# version = "1"  # TODO name the data as they are, and anew when they change: answers are then kept')
    guesses = [column for column, kind in columns if kind is not Type.OTHER and _may_be_a_person(column)]
    lines += [f"# unit = {_text(each)}  # TODO whose row is it? Guessed by the name" for each in guesses]
    if not guesses:
        lines.append("# unit = ...  # TODO whose row is it?")
    lines.append("#   Without a unit each row is a person. With one: how many rows of a person count?")
    lines += ["# max_rows = ...", "", f"[tables.{_key(name)}.columns]"]
    return "\n".join([*lines, *(_line(column, kind) for column, kind in columns), ""])


def _line(column: str, kind: Type) -> str:
    if kind is Type.OTHER:
        return f"# {_key(column)}: of a type that has no operations here"
    todo = {Type.TEXT: "TODO keys, if they are public", Type.BOOLEAN: ""}.get(kind, "TODO bounds")
    return f'{_key(column)} = {{ type = "{kind}" }}  # check the type{f"; {todo}" if todo else ""}'


def _may_be_a_person(column: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).casefold()
    parts = [part for part in re.split(r"[^a-z0-9]+", words) if part]
    return (len(parts) > 1 and parts[-1] in _NUMBERS) or (len(parts) == 1 and parts[0] in _PEOPLE)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
