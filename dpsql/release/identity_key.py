"""A value as the key of a cache: equal to itself alone, where comparing whole values would take as long as they do.

A plan is compared under Laplace and Gaussian noise; what does not depend on the law is derived once. While a cache
holds a key it holds the value, so that no other can have its identity.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")


class IdentityKey(Generic[Value]):
    """Hashed and compared by the identity of its value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
