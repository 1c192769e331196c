"""Synthetic rows for trying post-processing SQL before anything is charged. SQL that fails on all of them, including a
row of NULLs, fails because of its constants, such as `LAG(n, 1, 'none')` for a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpsql.plan.expressions import DTYPES, Vector
from dpsql.postprocess.frames import Frame, Header
from dpsql.schema.columns import Type

_CELLS: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (1, 1000, 0, -1),
    Type.REAL: (1.0, 1000.0, 0.0, -1.0),
    Type.BOOLEAN: (True, False, True, False),
    Type.TEXT: ("a", "1", "2024-01-01", "2024-01-01 00:00:00"),
    Type.DATE: (19723, 0, 60, 19753),  # days since 1970
    Type.TIMESTAMP: (19723 * 86_400_000_000, 0, 60, 1),  # microseconds since 1970
}
_TRIALS = 1 + len(_CELLS[Type.INTEGER])
"""Number of trials; the last one uses NULLs."""


def constant_failure(headers: Sequence[Header], attempt: Callable[[Mapping[str, Frame]], None]) -> Exception | None:
    """Return the error of SQL that fails on each synthetic row of its relations; None if it succeeds on one.

    Parameters
    ----------
    attempt
        Runs the SQL over one row of each relation, and raises a `duckdb.Error`.

    Returns
    -------
    The error on rows of NULLs, which can quote only constants of the SQL."""
    import duckdb

    failed: duckdb.Error | None = None
    for trial in range(_TRIALS):
        try:
            attempt({header.name: _one_row(header, trial) for header in headers})
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            return None  # actual rows have their own limits
        except duckdb.Error as error:
            failed = error
        else:
            return None
    return failed


def _one_row(header: Header, trial: int) -> Frame:
    kinds = tuple(kind for _, kind in header.columns)
    valid = None if trial < _TRIALS - 1 else np.zeros(1, dtype=bool)
    cells = (_CELLS[kind][trial % (_TRIALS - 1)] for kind in kinds)
    vectors = tuple(
        Vector(np.array([cell], dtype=DTYPES[kind]), valid) for cell, kind in zip(cells, kinds, strict=True)
    )
    return Frame(tuple(name for name, _ in header.columns), kinds, vectors)
