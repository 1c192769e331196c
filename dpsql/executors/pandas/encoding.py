"""Columns as codes into their distinct values: texts, categories, dictionaries. The code -1 is NULL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.blocks import block_reader, read_objects
from dpsql.executors.pandas.cells import is_text
from dpsql.executors.pandas.numbering import numbered_texts
from dpsql.plan.expressions import Array, Vector
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass

Codes = NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class Encoded:
    """A column as codes into its distinct values; -1 is NULL, and indexes the extra last slot of `dictionary`. Two
    values of a dictionary may be the same."""

    codes: Codes
    dictionary: Vector
    nulls: bool
    """Whether any code is -1."""


def is_coded(dtype: object) -> bool:
    """Whether a column of this dtype is read by its distinct values whatever its declared type: categories,
    dictionaries and texts, which are few."""
    if isinstance(dtype, pd.ArrowDtype):
        return _is_dictionary(dtype) or str(dtype.pyarrow_dtype) in ("string", "large_string")
    return isinstance(dtype, pd.CategoricalDtype | pd.StringDtype)


def _is_dictionary(dtype: object) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).startswith("dictionary")


def encode(series: pd.Series, kind: Type, fill: Key) -> Encoded:
    """The codes of a column of texts or of one that `is_coded`, and its values as the type, `fill` where NULL."""
    codes, values = codes_of(series)
    cells = _values_of(values, kind, fill)
    null: Array = np.empty(1, dtype=cells.values.dtype)
    null[0] = fill
    valid = np.append(cells.where_valid(), False)
    return Encoded(codes, Vector(np.concatenate([cells.values, null]), valid), bool((codes < 0).any()))


def codes_of(series: pd.Series) -> tuple[Codes, pd.Series]:
    """A code for each cell, and the values that codes stand for; no cell that is not text is hashed or compared."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return np.asarray(series.cat.codes, dtype=np.int32), pd.Series(series.cat.categories)
    if _is_dictionary(series.dtype):
        return _codes_of_dictionary(series)
    if series.dtype == object:
        return _number_texts(series)
    numbered = numbered_texts(series, _is_plain)
    if numbered is not None:
        return numbered[0], pd.Series(numbered[1], dtype=object)
    codes, uniques = pd.factorize(series)
    texts = list(uniques)
    if not all(_is_plain(text) for text in texts):
        return _number_texts(series)
    return codes.astype(np.int32), pd.Series(texts, dtype=object)


def _codes_of_dictionary(series: pd.Series) -> tuple[Codes, pd.Series]:
    """Codes of an Arrow dictionary, whose chunks may number their values differently: one list of values after the
    other."""
    dtype, array = cast(Any, series.dtype), cast(Any, series.array)
    codes, values = [np.zeros(0, dtype=np.int32)], [pd.Series([], dtype=pd.ArrowDtype(dtype.pyarrow_dtype.value_type))]
    first = 0
    last: Any = None
    for chunk in array.__arrow_array__().chunks:
        if last is None or not chunk.dictionary.equals(last):
            first = sum(len(each) for each in values)
            last = chunk.dictionary
            values.append(pd.Series(pd.arrays.ArrowExtensionArray(last)))
        indices = chunk.indices.cast("int32").fill_null(-1).to_numpy()
        codes.append(np.where(indices < 0, -1, indices + first).astype(np.int32))
    return np.concatenate(codes), pd.concat(values, ignore_index=True)


def _number_texts(cells: Iterable[object]) -> tuple[Codes, pd.Series]:
    """Codes of texts by a dictionary of Python's: slower than pandas' table, and exact."""
    seen: dict[str, int] = {}
    codes = [seen.setdefault(str.__str__(cell), len(seen)) if is_text(cell) else -1 for cell in cells]
    return np.array(codes, dtype=np.int32), pd.Series(list(seen), dtype=object)


def _values_of(values: pd.Series, kind: Type, fill: Key) -> Vector:
    if kind is Type.TEXT:
        texts = [_text_of(cell) for cell in values.to_numpy(dtype=object)]
        filled = np.array([fill if text is None else text for text in texts], dtype=object)
        return Vector(filled, np.array([text is not None for text in texts], dtype=bool))
    read = block_reader(values, kind, fill)
    return read_objects(values, kind, fill) if read is None else read(0, len(values))


def _text_of(cell: object) -> str | None:
    """The text of a cell as Python's own, whatever its class does."""
    text = str.__str__(cell) if is_text(cell) else None
    return None if text is None or not _is_unicode(text) else text


def _is_plain(text: str) -> bool:
    """Neither a lone surrogate nor the way it is written: pandas' hash table takes the one for the other."""
    return "\\u" not in text and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """No lone surrogates, which are no characters; a cell with one is NULL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
