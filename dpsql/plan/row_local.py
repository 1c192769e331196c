"""Row-local evaluation: what a row comes to (its group, whether a filter passes, the integers that it adds) is a
function of its own cells, the text of the query and declared facts; the same bits wherever it stands and whatever
stands beside it.

Every other argument rests on this one. A sensitivity says how far a row more or less moves an answer while all other
rows add what they added before. If one row could change a bit of what others come to, all of them could pass a filter
that they failed, and no noise covers that.

Proof. (1) Integers, comparisons and moved bits have one result for each cell, and so have the operations that IEEE 754
rounds correctly: + - * / sqrt, fmod, rounding to whole numbers, conversions of type. IEEE 754 leaves open only which
zero the smaller or larger of 0.0 and -0.0 is: kernels that ask for it have one zero (`one_zero`).

(2) exp, log, log2, log10, cbrt and power are good to a unit in the last place, and NumPy holds several versions of each
that differ there. It chooses by the processor, which is one for all rows, and by where arrays lie: their strides,
alignment and byte order, and whether input and output overlap. It does not choose by the number of cells or by what is
in them: a version computes every lane of its vectors by itself, and the last few cells by the same instructions with
the other lanes masked. NumPy does not promise this, so `tests/executors/pandas/test_row_local.py` holds it: the same
bits at every place of arrays of 1 to 70 cells, which is each number of full and left-over lanes, beside any neighbours.

(3) `laid_out` makes of where an array lies a constant of its type: contiguous with the stride of the type itself,
aligned, in the machine's byte order. Results go to memory of their own, and kernels do not write to what they are
given, so that one result can serve several expressions of a block. `evaluate` (evaluation.py) alone hands arrays to
kernels, and hands on only what is laid out, or a constant of the text, whose stride is 0 whatever rows there are;
`elementary` lays that out too.

(4) Where code looks at a whole block (is anything NULL, negative, out of bounds?) it chooses between two ways that are
equal in the bits of every other cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

INEXACT = frozenset({"exp", "ln", "log2", "log10", "log_base", "cbrt", "power", "sin", "cos", "tan"})
"""The functions of (2), by name: what they give has last bits that are a library's."""


def laid_out(values: Array) -> Array:
    """The cells, shape (n,), as every kernel takes them; the same array where it lies so already.

    Strides are asked and not NumPy's flags: a view of one cell counts as contiguous and keeps the stride of the array
    that it was cut from, by which ufuncs choose.
    """
    dtype = values.dtype
    if values.strides == (dtype.itemsize,) and dtype.isnative and values.flags.aligned:
        return values
    own = np.empty(len(values), dtype.newbyteorder("="))
    own[:] = values
    return own


def elementary(function: np.ufunc, *operands: Array) -> Array:
    """A function that is not correctly rounded, cell by cell: the only way to call one over rows."""
    found: Array = function(*map(laid_out, operands))
    return found


def one_zero(fresh: Array) -> Array:
    """The same array, where it is of floats with 0.0 in place of -0.0: of memory that nobody else holds."""
    if fresh.dtype.kind == "f":
        fresh += 0.0
    return fresh
