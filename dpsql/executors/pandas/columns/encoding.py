"""Columns as codes into their distinct values: texts, categories, dictionaries. The code -1 is NULL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.blocks import block_reader, read_objects
from dpsql.executors.pandas.columns.cells import is_unicode
from dpsql.executors.pandas.columns.numbering import numbered_texts
from dpsql.plan.expressions import Array, Vector
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.stored_types import SIXTEEN_BYTES
from dpsql.schema.text_values import ReadText
from dpsql.sources.frames import ARROW_UUID, has_labels

Codes = NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class EncodedColumn:
    """A column as codes into its distinct values; -1 is NULL, and indexes the extra last slot of `dictionary`. A
    dictionary may hold a value twice."""

    codes: Codes
    dictionary: Vector
    nulls: bool
    """True if any code is -1."""


def is_coded(dtype: object) -> bool:
    """Return whether a column of this dtype is read by its distinct values, whatever its declared type: categories,
    dictionaries and texts, which have few."""
    return _is_dictionary(dtype) or _is_arrow_text(dtype) or isinstance(dtype, pd.CategoricalDtype | pd.StringDtype)


def _is_dictionary(dtype: object) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).startswith("dictionary")


_ARROW_UUIDS = (ARROW_UUID, SIXTEEN_BYTES)
_ARROW_TEXTS = ("string", "large_string", "string_view", *_ARROW_UUIDS)


def _is_arrow_text(dtype: object) -> bool:
    """Return whether the texts of a column are in an Arrow array: as bytes, which may be invalid UTF-8, or as UUIDs."""
    if isinstance(dtype, pd.StringDtype):
        return dtype.storage == "pyarrow"
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype) in _ARROW_TEXTS


def encode(
    series: pd.Series, kind: Type, fill: Key, read_text: ReadText, zone: str | None = None, *, clips: bool = False
) -> EncodedColumn:
    """Return the codes of a column of texts or one that `is_coded`, and its values as the type, `fill` for NULL."""
    codes, values = codes_of(series)
    cells = _values_of(values, kind, fill, read_text, zone, clips=clips)
    null: Array = np.empty(1, dtype=cells.values.dtype)
    null[0] = fill
    valid = np.append(cells.where_valid(), False)
    return EncodedColumn(codes, Vector(np.concatenate([cells.values, null]), valid), bool((codes < 0).any()))


def codes_of(series: pd.Series) -> tuple[Codes, pd.Series]:
    """Return a code for each cell, and the codes' values. Objects are coded by their texts and never hashed."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = series.cat.categories
        if has_labels(series.dtype):
            categories = pd.Index([str(each) for each in categories], dtype=object)
        return _decoded(np.asarray(series.cat.codes, dtype=np.int32), pd.Series(categories))
    if _is_dictionary(series.dtype):
        return _decoded(*_codes_of_dictionary(series))
    if _is_arrow_text(series.dtype):
        return _codes_of_arrow_texts(series)
    if series.dtype == object:
        return _number_texts(series)
    numbered = None if _is_of_numbers(series.dtype) else numbered_texts(series, _is_plain)
    if numbered is not None:
        return numbered[0], pd.Series(numbered[1], dtype=object)
    codes, uniques = pd.factorize(series)
    texts = list(uniques)
    if _is_of_numbers(series.dtype):
        return codes.astype(np.int32), pd.Series(texts, dtype=object)
    if not all(_is_plain(text) for text in texts):
        return _number_texts(series)
    return codes.astype(np.int32), pd.Series(texts, dtype=object)


def _is_of_numbers(dtype: object) -> bool:
    """Return whether whole numbers are stored, which may be declared as text."""
    decimals = isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("decimal")
    return getattr(dtype, "kind", "") in "iu" or decimals


def _codes_of_dictionary(series: pd.Series) -> tuple[Codes, pd.Series]:
    """Return the codes of an Arrow dictionary, and its chunks' values, which may be numbered differently."""
    dtype, array = cast(Any, series.dtype), cast(Any, series.array)
    codes, values = _codes_of_dictionary_chunks(array.__arrow_array__().chunks)
    none = pd.Series([], dtype=pd.ArrowDtype(dtype.pyarrow_dtype.value_type))
    listed = [none, *(pd.Series(pd.arrays.ArrowExtensionArray(each)) for each in values)]
    return codes, pd.concat(listed, ignore_index=True)


def _codes_of_dictionary_chunks(chunks: Iterable[Any]) -> tuple[Codes, list[Any]]:
    """Return the codes of an Arrow dictionary's chunks, and their values; codes index the concatenated values."""
    codes: list[Any] = [np.zeros(0, dtype=np.int32)]
    values: list[Any] = []
    first = 0
    for chunk in chunks:
        if not values or not chunk.dictionary.equals(values[-1]):
            first = sum(len(each) for each in values)
            values.append(chunk.dictionary)
        indices = chunk.indices.cast("int32").fill_null(-1).to_numpy()
        codes.append(np.where(indices < 0, -1, indices + first).astype(np.int32))
    return np.concatenate(codes), values


def _decoded(codes: Codes, values: pd.Series) -> tuple[Codes, pd.Series]:
    """Return the codes with plain values, neither coded nor Arrow texts."""
    if not is_coded(values.dtype):
        return codes, values
    places, inner = codes_of(values)
    return np.append(places, np.int32(-1))[codes], inner


def _codes_of_arrow_texts(series: pd.Series) -> tuple[Codes, pd.Series]:
    """Return the codes of a column of Arrow texts, by their bytes: Arrow does not check that they are UTF-8. Invalid
    bytes have the value None. The text of a UUID is that of its 128 bits."""
    import pyarrow as pa  # type: ignore[import-untyped]  # there: the column is Arrow's

    array: Any = series.array
    chunks = array.__arrow_array__()
    of_uuids = str(chunks.type) in _ARROW_UUIDS
    kind = pa.binary(16) if of_uuids else pa.binary() if chunks.type == pa.string() else pa.large_binary()
    codes, values = _codes_of_dictionary_chunks(chunks.cast(kind).dictionary_encode().chunks)
    decode = _uuid_text if of_uuids else _decoded_text
    texts = [None if each is None else decode(each) for chunk in values for each in chunk.to_pylist()]
    return codes, pd.Series(texts, dtype=object)


def _uuid_text(cell: bytes) -> str:
    return str(UUID(bytes=cell))


def _decoded_text(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _number_texts(cells: Iterable[object]) -> tuple[Codes, pd.Series]:
    """Return the codes of texts by a Python dictionary: slower than pandas' table, and exact."""
    from dpsql.executors.pandas.columns.object_values import value_of_object  # most columns hold no objects

    seen: dict[str, int] = {}
    texts: Iterable[Any] = (value_of_object(cell, Type.TEXT, str) for cell in cells)
    codes = [-1 if text is None else seen.setdefault(text, len(seen)) for text in texts]
    return np.array(codes, dtype=np.int32), pd.Series(list(seen), dtype=object)


def _values_of(
    values: pd.Series, kind: Type, fill: Key, read_text: ReadText, zone: str | None, *, clips: bool
) -> Vector:
    read = None if kind is Type.TEXT else block_reader(values, kind, fill, zone, clips=clips)
    return read_objects(values, kind, fill, read_text, zone, clips=clips) if read is None else read(0, len(values))


def _is_plain(text: str) -> bool:
    """Return whether a text has neither a lone surrogate nor an escaped one: pandas' hash table confuses the two."""
    return "\\u" not in text and is_unicode(text)
