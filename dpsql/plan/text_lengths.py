"""Maximum lengths of texts: of expressions, and of texts that functions read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsql.plan.expressions import Call, Column, Expr, Fact, Function, Literal, unfiltered
from dpsql.plan.work import LONGEST_TEXT, UNBOUNDED, Size
from dpsql.schema.columns import Type
from dpsql.schema.memoization import remembered


def longest(expr: Expr, stored: int = UNBOUNDED) -> int:
    """Return the maximum number of characters of a text; `stored` for a stored one without a declared limit. 0 for
    other types."""
    if isinstance(expr, Call):
        return _longest_of(expr) if expr.type is Type.TEXT else 0
    if expr.type is not Type.TEXT or (isinstance(expr, Literal) and expr.value is None):
        return 0
    most = expr.fact.most if isinstance(expr, Column | Literal) else None
    return stored if most is None else most


def size_of(expr: Expr, characters: int) -> Size:
    """Return the size of an argument with at most this many characters."""
    constant = expr.value if isinstance(expr, Literal) else None
    upper = unfiltered(expr).range.upper if expr.type is Type.INTEGER else math.inf
    return Size(characters, upper, constant)


def reading_limit(function: Function, place: int) -> int:
    """Return the longest text that a function reads as its argument at a place; longer ones are NULL."""
    reads = function.reads
    return UNBOUNDED if reads is None else reads[min(place, len(reads) - 1)]


def read_sizes(function: Function, args: Sequence[Expr], lengths: Sequence[int]) -> list[Size]:
    """Return the sizes of arguments, with at most these many characters, as a function reads them."""
    return [
        size_of(arg, length if isinstance(arg, Literal) else min(length, reading_limit(function, place)))
        for place, (arg, length) in enumerate(zip(args, lengths, strict=True))
    ]


def made_length(function: Function, sizes: Sequence[Size], held: Fact) -> int:
    """Return the maximum number of characters of a text that a function makes from arguments of these sizes."""
    if function.length is None:
        most = LONGEST_TEXT
    elif function.reads is None:
        most = function.length(sizes)
    else:
        most = min(LONGEST_TEXT, function.length(sizes))
    return most if held.most is None else min(most, held.most)


@remembered(65_536)
def _longest_of(call: Call) -> int:
    return made_length(
        call.function, read_sizes(call.function, call.args, [longest(arg) for arg in call.args]), call.held
    )


def is_cut(call: Call, place: int) -> bool:
    """Return whether the argument at a place can be a text longer than the function reads, and therefore NULL."""
    arg = call.args[place]
    return not isinstance(arg, Literal) and longest(arg) > reading_limit(call.function, place)
