"""Codes of a column's values, block by block: only the codes are as long as the column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.blocks import Reader
from dpsql.plan.expressions import Vector

Codes = NDArray[np.int32]
_BLOCK = 65_536
_TEXTS_AT_ONCE = 1 << 19
_MOST_TEXTS = 1 << 14
"""With more distinct texts, all are numbered at once: joining the numbers of blocks would take longer."""


def numbered_texts(series: pd.Series, fits: Callable[[str], bool]) -> tuple[Codes, list[str]] | None:
    """Return the codes of a column of texts in order of first appearance, -1 for NULL, and the texts; None if a text
    does not fit pandas' hash table, or if there are many."""
    array: Any = series.array
    codes = np.empty(len(series), dtype=np.int32)
    seen: dict[str, int] = {}
    starts = [0, *range(_BLOCK, len(series), _TEXTS_AT_ONCE)]  # a short block first, which shows whether there are many
    for start, stop in zip(starts, [*starts[1:], len(series)], strict=True):
        block_codes, uniques = pd.factorize(array[start:stop])
        texts = list(uniques)
        if not all(text in seen or fits(text) for text in texts):
            return None
        table = np.array([*(seen.setdefault(text, len(seen)) for text in texts), -1], dtype=np.int32)
        if len(seen) > _MOST_TEXTS:
            return None
        codes[start:stop] = table[block_codes]
    return codes, list(seen)


def numbered_integers(read: Reader, rows: int) -> tuple[Codes, Vector] | None:
    """Return the codes of whole numbers in order of first appearance, and the numbers, followed by NULL if it occurs;
    None if they do not lie close together, or are too few to tell."""
    starts = range(0, rows, _BLOCK)
    low, high = 2**63, -(2**63)
    for start in starts:
        block = read(start, min(start + _BLOCK, rows))
        values = block.values if block.valid is None else block.values[block.valid]
        if len(values):
            low, high = min(low, int(values.min())), max(high, int(values.max()))
    size = high - low + 1
    if not 0 < size <= rows // 4:
        return None
    table = np.full(size, -1, dtype=np.int32)
    codes = np.empty(rows, dtype=np.int32)
    numbers: list[NDArray[np.int64]] = []
    known, nulls = 0, False
    for start in starts:
        stop = min(start + _BLOCK, rows)
        block = read(start, stop)
        places = (block.values if block.valid is None else np.where(block.valid, block.values, low)) - low
        block_codes = table[places]
        if block_codes.min() < 0:
            wanted = block_codes < 0 if block.valid is None else (block_codes < 0) & block.valid
            new = pd.unique(places[wanted])
            table[new] = np.arange(known, known + len(new))
            known += len(new)
            numbers.append(new)
            block_codes = table[places]
        if block.valid is not None:
            block_codes[~block.valid] = -1
            nulls = True
        codes[start:stop] = block_codes
    cells = np.concatenate(numbers) + low
    if not nulls:
        return codes, Vector(cells)
    codes[codes < 0] = known
    return codes, Vector(np.append(cells, 0), np.append(np.ones(known, dtype=bool), False))
