"""Columns of frames (from dtypes only, without reading rows) and of files, and text files read by declared types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from dpsql.errors import InvalidSchema
from dpsql.schema.column_declarations import Pair, Within
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, StoredColumn
from dpsql.schema.stored_types import width_of

if TYPE_CHECKING:
    from dpsql.schema.text_format import TextFormat


def stored_columns(frame: pd.DataFrame) -> list[StoredColumn]:
    """Return names, types and nullability by dtype. dtypes count as public: a single NULL turns an int64 column into
    float64, so declare types if even that must stay private. Raises InvalidSchema for names that are not text."""
    for name in frame.columns:
        if not isinstance(name, str):
            raise InvalidSchema(f"column names must be text, got {name!r}.", hint="Rename it: df.rename(columns=str).")
        if "\0" in name:
            raise InvalidSchema("a column name holds a NUL character.")
    dtypes = list(frame.dtypes)
    return [_stored(name, dtype) for name, dtype in zip(frame.columns, dtypes, strict=True)]


def _stored(name: str, dtype: object) -> StoredColumn:
    kind = _type_of(dtype)
    return StoredColumn(name, kind, _can_hold_null(dtype), _storage(dtype, kind), _width(dtype) if kind.numeric else 0)


def _width(dtype: object) -> int:
    values = str(dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype)
    return width_of(values.partition(", indices=")[0])  # for a dictionary type


def _storage(dtype: object, kind: Type) -> str:
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    values = dtype.categories.dtype
    return f"category of {values}" if has_labels(dtype) or kind is Type.OTHER else "category"


def has_labels(dtype: object) -> bool:
    """Return whether the categories of a dtype are intervals (of pd.cut), periods or time spans. dpsql has no types for
    these values, and reads them as the texts that pandas shows."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return False
    values = dtype.categories.dtype
    return isinstance(values, pd.IntervalDtype | pd.PeriodDtype) or getattr(values, "kind", "") == "m"


CATEGORIES = "categories"
"""Stands for a list of keys: the categories of the column's dtype, which the caller thereby declares public."""


def with_categories(keys: Any, frame: object) -> Any:
    """Return declared keys, with the categories of a column's dtype for keys "categories". No row is read. Raises
    InvalidSchema for a column of another dtype."""
    if not isinstance(keys, Mapping) or not any(isinstance(each, str) and each == CATEGORIES for each in keys.values()):
        return keys
    return {
        name: _categories(name, frame) if isinstance(each, str) and each == CATEGORIES else each
        for name, each in keys.items()
    }


def _categories(name: object, frame: object) -> list[Any]:
    dtypes = dict(frame.dtypes) if isinstance(frame, pd.DataFrame) else {}
    dtype = next((each for own, each in dtypes.items() if str(own).casefold() == str(name).casefold()), None)
    if not isinstance(dtype, pd.CategoricalDtype) or has_labels(dtype):
        raise InvalidSchema(
            f'{name}: keys "{CATEGORIES}" are those of a column whose dtype is category, with texts or numbers.',
            hint=f'List them: keys={{"{name}": ["a", "b"]}}.',
        )
    return list(dtype.categories.tolist())


_BY_KIND = {
    "b": Type.BOOLEAN,
    "i": Type.INTEGER,
    "u": Type.INTEGER,
    "f": Type.REAL,
    "M": Type.TIMESTAMP,
    "O": Type.OBJECT,
}
_BY_ARROW_NAME = {
    "bool": Type.BOOLEAN,
    "int": Type.INTEGER,
    "uint": Type.INTEGER,
    "halffloat": Type.REAL,
    "float": Type.REAL,
    "double": Type.REAL,
    "decimal": Type.REAL,
    "string": Type.TEXT,
    "large_string": Type.TEXT,
    "string_view": Type.TEXT,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
    "null": Type.TEXT,  # like a column of objects that are all None
}


ARROW_UUID = "extension<arrow.uuid>"
_NULLABLE = (pd.arrays.BooleanArray, pd.arrays.IntegerArray, pd.arrays.FloatingArray)


def _type_of(dtype: object) -> Type:
    if isinstance(dtype, pd.CategoricalDtype):
        return Type.TEXT if has_labels(dtype) else _type_of(dtype.categories.dtype)
    if isinstance(dtype, np.dtype):
        return _BY_KIND.get(dtype.kind, Type.OTHER)
    if isinstance(dtype, pd.StringDtype):
        return Type.TEXT
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow_type(dtype.pyarrow_dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Type.TIMESTAMP
    if isinstance(dtype, ExtensionDtype) and dtype.construct_array_type() in _NULLABLE:
        return _BY_KIND[dtype.kind]
    return Type.OTHER


def _arrow_type(stored: Any) -> Type:
    """Return the type by the name of an Arrow type: "decimal128(10, 2)" is a decimal."""
    name = re.split("[^a-z_]", str(stored))[0]
    if str(stored) == ARROW_UUID:
        return Type.TEXT
    if name == "dictionary":
        return _arrow_type(stored.value_type)
    if name == "timestamp" and stored.tz and not _is_zone(stored.tz):
        return Type.OTHER
    return _BY_ARROW_NAME.get(name, Type.OTHER)


def _is_zone(name: str) -> bool:
    """Return whether a time zone is known; Arrow accepts any name."""
    try:
        pd.DatetimeTZDtype("us", name)
    except Exception:  # noqa: BLE001 - of various classes
        return False
    return True


def _can_hold_null(dtype: object) -> bool:
    return not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


def read_table(path: Path, declared: Declaration, form: TextFormat | None = None) -> tuple[pd.DataFrame, Declaration]:
    """Read a file, or all files that match a pattern, as one frame. Returns also the declaration, with the types used
    for reading.

    Text files have no types: cells are text, cast by declared type. A column without declared type has the type of its
    bounds (real numbers, dates or timestamps), or is text without bounds. Thus an odd cell affects only itself. Raises
    InvalidSchema.
    """
    from dpsql.sources.files import files_of  # not needed for frames

    declaration = with_types_of_text(declared)
    files = files_of(path)
    frames = [_read_file(each, declaration, form) for each in files]
    for file, frame in zip(files, frames, strict=True):
        if list(frame.columns) != list(frames[0].columns):
            raise InvalidSchema(
                f"{file.name} has other columns than {files[0].name}.",
                hint="Files of one table have the same columns in the same order.",
            )
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True), declaration


def encodings_of(declared: Declaration) -> dict[str, str]:
    """Return the encodings of columns in text files, by folded name, that differ from the file's."""
    return {name.casefold(): each.encoding for name, each in declared.formats.items() if each.encoding}


def with_types_of_text(declared: Declaration) -> Declaration:
    """Return a declaration with the types for reading text, declared or derived from bounds."""
    types = {name: _type_within(bounds) for name, bounds in declared.bounds.items()}
    return replace(declared, types={**types, **declared.types})


def check_kind(path: Path) -> None:
    """Raise InvalidSchema for a file whose ending no reader supports."""
    from dpsql.schema.text_format import LINES_ENDINGS, PACKED_ENDINGS, TEXT_ENDINGS
    from dpsql.sources.files import kind_of
    from dpsql.sources.stored import DATABASE_ENDINGS, PARQUET_ENDINGS

    if kind_of(path) not in (*TEXT_ENDINGS, *LINES_ENDINGS):
        if path.is_dir():
            raise InvalidSchema(f"{path} is a folder.", hint=f"Name the files in it: {path / '*.parquet'}")
        whole = ", ".join((*PARQUET_ENDINGS, *DATABASE_ENDINGS))
        raise InvalidSchema(
            f"{path.name}: only files named {', '.join((*TEXT_ENDINGS, *LINES_ENDINGS))}, these packed "
            f"({', '.join(PACKED_ENDINGS)} behind it), and {whole} can be read.",
            hint=f"Name it by what it holds, such as {path.stem}.csv{path.suffix}."
            if path.suffix.casefold() in PACKED_ENDINGS and not kind_of(path)
            else "Load others with pandas.",
        )


def _read_file(path: Path, declared: Declaration, form: TextFormat | None) -> pd.DataFrame:
    from dpsql.schema.encodings import UTF_8
    from dpsql.schema.text_format import TEXT_ENDINGS, TextFormat
    from dpsql.sources.files import kind_of

    if kind_of(path) in TEXT_ENDINGS:
        from dpsql.sources.text_files import read_text

        encodings = encodings_of(declared)
        if encodings and form is not None and form.encoding != UTF_8:
            raise InvalidSchema(
                f"{path.name} is in {form.encoding} as a whole, and encoding is said of columns too.",
                hint="Leave one of them out.",
            )
        return read_text(path, form or TextFormat(), encodings)
    check_kind(path)
    from dpsql.sources.json_lines import read_json_lines

    if form not in (None, TextFormat()):
        raise InvalidSchema(
            f"{path.name} has a JSON object in each line, in UTF-8: no delimiter, quote or header.",
            hint="Leave these words out.",
        )
    declared.check_without_bytes()
    if not declared.named:
        raise InvalidSchema(
            f"{path.name}: a file of JSON lines does not name its columns.",
            hint='Declare their types, such as types={"age": "integer"}.',
        )
    return read_json_lines(path, declared.named)


def _type_within(bounds: Pair | Within | str) -> Type:
    """Return the type of values between two bounds."""
    if isinstance(bounds, str) or not isinstance(bounds[-1], date):
        return Type.REAL
    return Type.TIMESTAMP if any(isinstance(each, datetime) for each in bounds) else Type.DATE
