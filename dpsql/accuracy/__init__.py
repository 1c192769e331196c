"""Error bounds of noise: the bounds proved in papers next to the exact values.

    from dpsql.accuracy import laplace
    laplace(epsilon=1, k=16, beta=0.05)      # Bound(paper=5.77, exact=5.74)

A `Bound` is a distance that is exceeded with probability at most beta. All functions use only public numbers (scales,
epsilons, numbers of answers), except `choice`, which is for the data owner: it takes exact utilities.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.accuracy.bounds import (
        Bound,
        Choice,
        choice,
        epsilon_for,
        exponential,
        gaussian,
        laplace,
        laplace_sum,
        permute_and_flip,
    )

__all__ = [
    "Bound",
    "Choice",
    "choice",
    "epsilon_for",
    "exponential",
    "gaussian",
    "laplace",
    "laplace_sum",
    "permute_and_flip",
]


def __getattr__(name: str) -> object:
    """Import the public functions on first use: queries need this package, but none of them."""
    if name in __all__:
        return getattr(import_module("dpsql.accuracy.bounds"), name)
    raise AttributeError(f"module 'dpsql.accuracy' has no attribute {name!r}")
