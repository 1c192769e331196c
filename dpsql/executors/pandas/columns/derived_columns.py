"""Columns derived by a query: marks, aggregates of each unit, unions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.blocks import Reader
from dpsql.executors.pandas.columns.declared_columns import number
from dpsql.executors.pandas.columns.encoding import EncodedColumn
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type

Made = Vector | EncodedColumn


class DerivedColumns:
    """Columns by name, each computed when it is first read: texts as codes, anything else as one vector."""

    def __init__(self, rows: int, makers: Mapping[str, tuple[Type, Callable[[], Made]]]) -> None:
        self._rows = rows
        self._makers = makers
        self._made: dict[str, Made] = {}

    @property
    def rows(self) -> int:
        return self._rows

    def reader(self, name: str) -> Reader:
        column = self._of(name)
        if isinstance(column, EncodedColumn):
            return lambda start, stop: column.dictionary.at(column.codes[start:stop])
        return lambda start, stop: column.at(slice(start, stop))

    def encoded(self, name: str) -> EncodedColumn:
        column = self._of(name)
        if isinstance(column, Vector):
            column = self._made[name] = encoded_texts(column)
        return column

    def numbered(self, name: str) -> tuple[NDArray[np.int32], Vector]:
        made = self._of(name)
        assert isinstance(made, Vector)  # texts are read by `encoded`
        return number(made, self._makers[name][0])

    def _of(self, name: str) -> Made:
        if name not in self._made:
            self._made[name] = self._makers[name][1]()
        return self._made[name]


def encoded_texts(vector: Vector) -> EncodedColumn:
    """Encode texts by their distinct values."""
    cells = vector.values.copy()
    cells[~vector.where_valid()] = None
    codes, texts = pd.factorize(cells)
    dictionary = np.append(np.asarray(texts, dtype=object), "")
    valid = np.ones(len(dictionary), dtype=bool)
    valid[-1] = False
    return EncodedColumn(codes.astype(np.int32), Vector(dictionary, valid), bool((codes < 0).any()))


def joined_texts(parts: list[EncodedColumn]) -> EncodedColumn:
    """Concatenate the texts of several columns, and their dictionaries."""
    codes, values, valid, size = [], [], [], 0
    for part in parts:
        cells = part.dictionary
        held = np.where(part.codes < 0, np.int32(len(cells) - 1), part.codes)
        codes.append((held + size).astype(np.int32))
        values.append(cells.values)
        valid.append(cells.where_valid())
        size += len(cells)
    last = np.array([""], dtype=object)
    whole = Vector(np.concatenate([*values, last]), np.concatenate([*valid, np.zeros(1, dtype=bool)]))
    return EncodedColumn(np.concatenate(codes), whole, nulls=False)
