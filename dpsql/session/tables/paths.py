"""Data at a path, as the source of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.schema.declaration import Declaration
from dpsql.schema.text_format import TEXT_ENDINGS, TextFormat, words_in_toml
from dpsql.sources.files import files_of, kind_of
from dpsql.sources.frames import check_kind, read_table
from dpsql.sources.stored import (
    DatabaseTable,
    Origin,
    PartedFiles,
    StoredFiles,
    files_in,
    stamps_of,
    stored_files,
)


def origin_of(source: StoredFiles) -> Origin:
    """Return the files of a source that is read now, once. Raises InvalidSchema for parts."""
    if isinstance(source, PartedFiles):
        raise InvalidSchema(
            f"{{{source.column}}} in a path is of tables of people's rows, and this one is public.",
            hint='Name its files by a pattern: "codes/*.parquet".',
        )
    files = files_in(source)
    return Origin(files, stamps_of(files), source.table if isinstance(source, DatabaseTable) else "")


def table_at(
    path: Path, declared: Declaration, form: TextFormat | None = None, table: str | None = None
) -> tuple[Any, Declaration, Any]:
    """Return the source at a path, its declaration with the types by which text was read, and its files
    (`Table.origin`). Raises InvalidSchema."""
    stored = stored_files(path, table)
    if stored is not None:
        if form is not None and form != TextFormat():
            raise InvalidSchema(
                f"{path.name} is no text file: no delimiter, quote, header, skip, encoding or multiline.",
                hint="Leave these words out.",
            )
        return stored, declared, stored
    files = files_of(path)
    for each in files:
        check_kind(each)
    stamps = stamps_of(files)  # of the names as written, which messages show
    frame, declaration = read_table(path, declared, form)
    drops = _can_drop_rows(files, form, len(frame.columns))
    words = {word: value for word, value in (form or TextFormat()).words.items() if word in ("skip", "encoding")}
    origin = Origin(tuple(each.absolute() for each in files), stamps, words_in_toml(words), can_drop_rows=drops)
    return frame, declaration, origin


def _can_drop_rows(files: Sequence[Path], form: TextFormat | None, columns: int) -> bool:
    """As in `TableSchema`, for text. With `multiline`, a quote in a cell can pull the following lines into its record.
    In a file with one column, a NULL is an empty line, and an empty last line without a line end is no row."""
    separated = any(kind_of(each) in TEXT_ENDINGS for each in files)
    return separated and (columns == 1 or (form is not None and form.multiline))
