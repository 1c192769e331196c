"""Frames and files: what columns they have (from dtypes alone, no row is read), and CSV files read by declared
types."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.schema import Declaration, Stored, Type


def stored_columns(frame: pd.DataFrame) -> list[Stored]:
    """Names, types and nullability by dtype. dtypes count as public: one NULL turns an int64 column into float64,
    so declare types where even that must not show. Raises InvalidSchema for names that are not text."""
    for name in frame.columns:
        if not isinstance(name, str):
            raise InvalidSchema(f"column names must be text, got {name!r}.", hint="Rename it: df.rename(columns=str).")
        if "\0" in name:
            raise InvalidSchema("a column name holds a NUL character.")
    dtypes = list(frame.dtypes)
    return [_stored(name, dtype) for name, dtype in zip(frame.columns, dtypes, strict=True)]


def _stored(name: str, dtype: object) -> Stored:
    storage = "category" if isinstance(dtype, pd.CategoricalDtype) else str(dtype)
    return Stored(name, _type_of(dtype), _can_hold_null(dtype), storage)


def _type_of(dtype: object) -> Type:
    if isinstance(dtype, pd.CategoricalDtype):
        return _type_of(dtype.categories.dtype)
    if isinstance(dtype, np.dtype):
        kinds = {"b": Type.BOOLEAN, "i": Type.INTEGER, "u": Type.INTEGER, "f": Type.REAL, "O": Type.TEXT}
        return kinds.get(dtype.kind, Type.OTHER)
    if isinstance(dtype, pd.StringDtype):
        return Type.TEXT
    return _extension_type(dtype)


def _extension_type(dtype: object) -> Type:
    """Nullable and Arrow dtypes, by what pandas says of them."""
    if isinstance(dtype, pd.SparseDtype):
        return Type.OTHER
    kind = getattr(dtype, "kind", "O")
    text = isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith(("string", "large_string"))
    if text:
        return Type.TEXT
    kinds = {"b": Type.BOOLEAN, "i": Type.INTEGER, "u": Type.INTEGER, "f": Type.REAL}
    return kinds.get(str(kind), Type.OTHER)


def _can_hold_null(dtype: object) -> bool:
    return not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


def read_table(path: Path, said: Declaration) -> tuple[pd.DataFrame, Declaration]:
    """A file as a frame, and its declaration with the types that decide how it was read.

    A CSV file has no types of its own: its cells are text, cast by declared type; a column without a declared type is
    real if it has bounds, else text. So one odd cell changes nothing but itself. Raises InvalidSchema.
    """
    if path.suffix.casefold() not in (".csv", ".txt"):
        raise InvalidSchema(f"{path.name}: only .csv files can be read; load others with pandas.")
    real = dict.fromkeys(said.bounds, Type.REAL)
    return _read_csv(path), Declaration(said.bounds, said.keys, {**real, **said.types}, said.nullable)


def _read_csv(path: Path) -> pd.DataFrame:
    """A CSV file with all cells as text; an empty cell is NULL, and a line of too many cells is left out.

    A quote that is never closed reaches over the lines after it: the file is the owner's to get right."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            names = next(csv.reader(file, skipinitialspace=True), [])
        _check_header(path, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.ParserWarning)  # it tells of the first row
            return pd.read_csv(
                path,
                dtype="str",
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                index_col=False,
                names=names,
                header=0,
                on_bad_lines="skip",
                encoding="utf-8",
            )
    except (FileNotFoundError, IsADirectoryError):
        raise InvalidSchema(f"no file {path}.") from None
    except UnicodeDecodeError:
        raise InvalidSchema(f"{path.name} is not text in UTF-8.") from None
    except (OSError, ValueError, csv.Error) as error:  # the parser's own words may quote a line
        raise InvalidSchema(f"{path.name} cannot be read as CSV ({type(error).__name__}).") from None


def _check_header(path: Path, names: list[str]) -> None:
    if not names:
        raise InvalidSchema(f"{path.name} is empty: a CSV file begins with the names of its columns.")
    if not all(names):
        raise InvalidSchema(f"{path.name}: column {names.index('') + 1} has no name.")
    twice = [name for name, times in Counter(name.casefold() for name in names).items() if times > 1]
    if twice:
        raise InvalidSchema(f'{path.name}: two columns are named "{twice[0]}".', hint="Rename one of them.")
