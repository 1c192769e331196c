"""Identity-based cache keys, which avoid deep comparison.

A plan is compared under Laplace and Gaussian noise; facts that do not depend on the distribution are derived once.
While a cache holds a key it holds the value, so that no other value can have its identity.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")


class IdentityKey(Generic[Value]):
    """A key that is hashed and compared by the identity of its value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
