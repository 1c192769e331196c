"""Columns of the same cells that lie in memory in every way there is, and kernels that watch how cells reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dpsql.plan import evaluation
from dpsql.plan.expressions import Function, Vector
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from tests.executors.pandas.arrow_columns import ARROW

Cells = Sequence[Any]
"""Python values, None for NULL."""

STORED = {
    Type.INTEGER: np.dtype("int64"),
    Type.REAL: np.dtype("float64"),
    Type.BOOLEAN: np.dtype("bool"),
    Type.DATE: np.dtype("datetime64[s]"),
    Type.TIMESTAMP: np.dtype("datetime64[us]"),
    Type.TEXT: np.dtype("object"),
}


# Columns


def plain(cells: Cells, kind: Type) -> np.ndarray:
    """Contiguous memory of its own; NULL as NaN or NaT, and as the cell before it where there is neither."""
    dtype = STORED[kind]
    if kind is Type.TEXT:
        made = np.empty(len(cells), dtype=object)
        for place, cell in enumerate(cells):
            made[place] = cell
        return made
    if kind is Type.REAL:
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=dtype)
    if kind.temporal:
        size = 86_400 if kind is Type.DATE else 1
        nat = np.iinfo(np.int64).min
        return np.array([nat if cell is None else cell * size for cell in cells], dtype=np.int64).view(dtype)
    assert None not in cells, f"no NULL in {dtype}"
    return np.array(cells, dtype=dtype)


def every(step: int) -> Callable[[Cells, Type], Any]:
    """A view of every `step`-th cell of longer memory, from the end where that is below 0."""

    def made(cells: Cells, kind: Type) -> Any:
        own = plain(cells, kind)
        return spread(own, len(own) * abs(step))[::step]

    def spread(own: np.ndarray, size: int) -> np.ndarray:
        memory = np.zeros(size, dtype=own.dtype)
        memory[::step] = own
        return memory

    return made


def of_a_block(cells: Cells, kind: Type) -> Any:
    """A column of a matrix that is stored row by row."""
    own = plain(cells, kind)
    block = np.zeros((len(own), 5), dtype=own.dtype)
    block[:, 2] = own
    return block[:, 2]


def between_bytes(cells: Cells, kind: Type) -> Any:
    """A field of packed records: neither aligned nor close together."""
    own = plain(cells, kind)
    records = np.zeros(len(own), dtype=[("before", "u1"), ("x", own.dtype)])
    records["x"] = own
    return records["x"]


def at_an_odd_address(cells: Cells, kind: Type) -> Any:
    """Close together, and not aligned."""
    own = plain(cells, kind)
    return np.frombuffer(b"\0\0\0" + own.tobytes(), dtype=own.dtype, offset=3)


def in_other_order(cells: Cells, kind: Type) -> Any:
    own = plain(cells, kind)
    return own.astype(own.dtype.newbyteorder("S"))


def reversed_nullable(cells: Cells, kind: Type) -> Any:
    dtype = {Type.INTEGER: "Int64", Type.REAL: "Float64", Type.BOOLEAN: "boolean"}[kind]
    return pd.array(list(cells[::-1]), dtype=dtype)[::-1]


def in_arrow(cells: Cells, kind: Type, chunks: int = 1, shift: int = 3) -> Any:
    """Slices of longer Arrow arrays, that begin at places which are no multiples of eight."""
    import pyarrow as pa

    if kind.temporal:
        size, unit = (86_400, "s") if kind is Type.DATE else (1, "us")
        cells = [None if cell is None else cell * size for cell in cells]
        stored = pa.timestamp(unit)
    else:
        stored = {Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.BOOLEAN: pa.bool_()}[kind]
    ends = [len(cells) * each // chunks for each in range(chunks + 1)]
    parts = [list(cells[start:stop]) for start, stop in pairwise(ends)]
    some = next((each for each in cells if each is not None), None)
    made = [pa.array([some] * shift + part, stored)[shift:] for part in parts]
    return pd.arrays.ArrowExtensionArray(pa.chunked_array(made))


def chunked_arrow(cells: Cells, kind: Type) -> Any:
    return in_arrow(cells, kind, chunks=7, shift=1)


def arrow_at_an_odd_address(cells: Cells, kind: Type) -> Any:
    """A buffer that does not begin where a number may."""
    import pyarrow as pa

    own = plain(cells, kind)
    held = b"\0\0\0" + own.tobytes()
    array = pa.Array.from_buffers(pa.from_numpy_dtype(own.dtype), len(own), [None, pa.py_buffer(held)[3:]])
    return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))


Layout = Callable[[Cells, Type], Any]
NUMPY: dict[str, Layout] = {
    "contiguous": plain,
    "stride -1": every(-1),
    "stride 2": every(2),
    "stride -2": every(-2),
    "column of a block": of_a_block,
    "field of records": between_bytes,
    "odd address": at_an_odd_address,
    "other byte order": in_other_order,
}
NULLABLE: dict[str, Layout] = {"nullable": reversed_nullable}
IN_ARROW: dict[str, Layout] = (
    {"Arrow": in_arrow, "Arrow in chunks": chunked_arrow, "Arrow at an odd address": arrow_at_an_odd_address}
    if ARROW
    else {}
)
LAYOUTS = {**NUMPY, **NULLABLE, **IN_ARROW}


def can_lie(name: str, kind: Type, cells: Cells) -> bool:
    """Whether there is such a column of these cells."""
    if kind is Type.TEXT:
        return name in ("contiguous", "stride -1", "stride 2", "stride -2", "column of a block")
    if name == "nullable":
        return not kind.temporal
    if name == "Arrow at an odd address" and (kind is Type.BOOLEAN or kind.temporal):
        return False
    if name == "other byte order" and kind.temporal:  # pandas turns times into its own
        return False
    no_null = kind in (Type.INTEGER, Type.BOOLEAN) and (name in NUMPY or name == "Arrow at an odd address")
    return not (no_null and None in cells)


def lie(name: str, kind: Type, cells: Cells) -> pd.Series:
    """The column. That it lies so in the frame too, and was not put right on the way, is checked."""
    held = LAYOUTS[name](cells, kind)
    made = pd.Series(held, dtype=object if kind is Type.TEXT else None, copy=False)
    if name in NUMPY and not kind.temporal:
        assert made.to_numpy().strides == held.strides
        assert made.to_numpy().flags.aligned == held.flags.aligned
    return made


def frame_of(columns: dict[str, pd.Series]) -> pd.DataFrame:
    """A frame that holds these columns as they lie."""
    return pd.DataFrame(columns, copy=False)


# Kernels that watch


def is_laid_out(array: np.ndarray) -> bool:
    """Said again, apart from the engine's own words."""
    if not len(array):
        return True
    at_home = array.ctypes.data % array.dtype.alignment == 0 and array.dtype.byteorder in "=|"
    return array.ndim == 1 and array.strides == (array.itemsize,) and at_home


class Watch:
    """What kernels were handed: how often each was called with some cells, and what was wrong with an argument."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.wrong: list[str] = []
        self._constants: dict[int, Any] = {}

    def constant(self, made: Vector) -> Vector:
        self._constants.update({id(each): each for each in (made.values, made.valid) if each is not None})
        return made

    def look(self, name: str, vectors: Sequence[Vector]) -> list[bytes | list[Any]]:
        """Notes a call, and gives what stands in the arguments."""
        arrays = [each for vector in vectors for each in (vector.values, vector.valid) if each is not None]
        if any(map(len, arrays)):
            self.calls[name] = self.calls.get(name, 0) + 1
        for place, each in enumerate(arrays):
            if id(each) not in self._constants and not is_laid_out(each):
                self.wrong.append(f"{name}: array {place} has strides {each.strides}, {each.dtype}, {each.flags}")
        return [each.tolist() if each.dtype == object else each.tobytes() for each in arrays]

    def is_wrong(self, name: str) -> bool:
        return any(each.startswith(f"{name}:") for each in self.wrong)


@contextmanager
def watched(*, sensitive: bool = False) -> Iterator[Watch]:
    """Every kernel notes how its arguments lie, and whether it wrote to them.

    `sensitive`: like some processors' exp and log, a kernel of REALs gives the next float for arguments that do not lie
    as they should, so that it shows in the answer on every processor."""
    watch = Watch()
    honest = {name: function.kernel for name, function in FUNCTIONS.items()}
    constant = evaluation.constant

    def watching(function: Function) -> Callable[[Type, Sequence[Vector]], Vector]:
        kernel = function.kernel

        def run(kind: Type, vectors: Sequence[Vector]) -> Vector:
            known = len(watch.wrong)
            before = watch.look(function.name, vectors)
            found = kernel(kind, vectors)
            new = len(watch.wrong)
            if watch.look(function.name, vectors) != before:
                watch.wrong.append(f"{function.name}: wrote to its arguments")
            if sensitive and new > known and found.values.dtype == np.float64:
                return Vector(np.nextafter(found.values, np.inf), found.valid)
            return found

        return run

    try:
        for function in FUNCTIONS.values():
            object.__setattr__(function, "kernel", watching(function))
        evaluation.constant = lambda literal, size: watch.constant(constant(literal, size))
        yield watch
    finally:
        evaluation.constant = constant
        for name, function in FUNCTIONS.items():
            object.__setattr__(function, "kernel", honest[name])
