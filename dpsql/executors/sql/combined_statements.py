"""Results of a plan's statements as columns, and their combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.frozen import dataclass

Cells = NDArray[Any]
Valid = NDArray[np.bool_] | None
_ROOM = 2**63


@dataclass(frozen=True, repr=False)
class Answer:
    """The rows of a statement as columns: the section number; for each key its cells and a mask of those that are not
    NULL (None: all); whole numbers, int64 or Python's, arbitrary where a section has fewer."""

    sections: NDArray[np.int64]
    keys: tuple[tuple[Cells, Valid], ...]
    numbers: tuple[Cells, ...]


def joined(answers: Sequence[Answer]) -> Answer:
    """Concatenate all rows, with room for the sums of their integers."""
    kind = _kind_of_sums(answers)
    columns = zip(*(answer.numbers for answer in answers), strict=True)
    numbers = tuple(np.concatenate([each.astype(kind) for each in column]) for column in columns)
    keys = tuple(_joined_key(column) for column in zip(*(answer.keys for answer in answers), strict=True))
    return Answer(np.concatenate([answer.sections for answer in answers]), keys, numbers)


def _kind_of_sums(answers: Sequence[Answer]) -> Any:
    """Return int64 if the sum of one number per answer cannot overflow, otherwise Python's integers."""
    columns = [each for answer in answers for each in answer.numbers]
    if any(each.dtype == object for each in columns):
        return object
    largest = max((max(int(each.max()), -int(each.min())) for each in columns if each.size), default=0)
    return np.int64 if largest < _ROOM // len(answers) else object


def _joined_key(column: Sequence[tuple[Cells, Valid]]) -> tuple[Cells, Valid]:
    cells = np.concatenate([each for each, _ in column])
    valid = np.concatenate([np.ones(len(each), dtype=bool) if known is None else known for each, known in column])
    return cells, None if valid.all() else valid
