"""Row-local evaluation: a row's results (its group, whether a filter passes, the integers that it adds) are a function
of its own cells, the text of the query and declared facts; bit-identical at every position and next to any other rows.

All other arguments rest on this one. A sensitivity bounds the change of an answer by adding or removing a row while all
other rows add the same as before. If one row could change a bit of other rows' results, all of them could pass a filter
that they failed, and no noise covers that.

Proof. (1) Integers, comparisons and moved bits have one result for each cell, and so have the operations that IEEE 754
rounds correctly: + - * / sqrt, fmod, rounding to whole numbers, conversions of type. IEEE 754 leaves open only which
zero the smaller or larger of 0.0 and -0.0 is: kernels that compute either have one zero (`one_zero`).

(2) exp, log, log2, log10, cbrt and power are accurate to a unit in the last place, and NumPy has several versions of
each that differ there. It chooses by the processor, which is one for all rows, and by the layout of arrays: their
strides, alignment and byte order, and whether input and output overlap. It does not choose by the number or contents of
cells: a version computes every lane of its vectors independently, and the last few cells by the same instructions with
the other lanes masked. NumPy does not guarantee this, so `tests/executors/pandas/test_row_local.py` checks it: the same
bits at every place of arrays of 1 to 70 cells, which covers each number of full and left-over lanes, next to any
neighbours.

(3) `laid_out` makes the layout of an array a constant of its type: contiguous with the stride of the type, aligned, in
the machine's byte order. Results go to new memory, and kernels do not write to their inputs, so that one result can
serve several expressions of a block. Only `evaluate` (evaluation.py) passes arrays to kernels, and only arrays that are
laid out, or constants of the text, whose stride is 0 for any rows; `elementary` lays those out too.

(4) Code that looks at a whole block (is anything NULL, negative, out of bounds?) chooses between two ways with equal
bits for every other cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

INEXACT = frozenset({"exp", "ln", "log2", "log10", "log_base", "cbrt", "power", "sin", "cos", "tan"})
"""Functions of (2), by name: their last bits depend on a library."""


def laid_out(values: Array) -> Array:
    """Return the cells, shape (n,), as every kernel takes them; the same array if already laid out.

    Checks strides, not NumPy's flags: a view of one cell counts as contiguous and keeps the stride of its base array,
    by which ufuncs choose.
    """
    dtype = values.dtype
    if values.strides == (dtype.itemsize,) and dtype.isnative and values.flags.aligned:
        return values
    own = np.empty(len(values), dtype.newbyteorder("="))
    own[:] = values
    return own


def elementary(function: np.ufunc, *operands: Array) -> Array:
    """Apply a function that is not correctly rounded, cell by cell: the only way to call one over rows."""
    found: Array = function(*map(laid_out, operands))
    return found


def one_zero(fresh: Array) -> Array:
    """Return the array, with 0.0 instead of -0.0 if it is of floats. It must not share memory."""
    if fresh.dtype.kind == "f":
        fresh += 0.0
    return fresh
