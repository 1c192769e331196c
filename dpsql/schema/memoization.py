"""Memoization, separate for each analyst: planning time must not tell one analyst about another's queries. Without a
named analyst, as in a private session, results are shared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

MOST = 32
"""Maximum number of analysts; the one who asked first is forgotten first."""
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
_whose: ContextVar[str] = ContextVar("whose", default="")


@contextmanager
def remembered_for(whose: str) -> Iterator[None]:
    """Use a separate cache for `whose` inside."""
    before = _whose.set(whose)
    try:
        yield
    finally:
        _whose.reset(before)


class MemoizedFunction(Generic[Arguments, Value]):
    """A pure function with a cache, as by `functools.lru_cache`."""

    def __init__(self, function: Callable[Arguments, Value], most: int) -> None:
        self.__wrapped__ = function
        self._most = most
        self._memories: OrderedDict[str, Any] = OrderedDict()
        update_wrapper(self, function)

    def __call__(self, *args: Arguments.args, **named: Arguments.kwargs) -> Value:
        value: Value = self._memory()(*args, **named)
        return value

    def cache_info(self) -> Any:
        """Return cache statistics for the current analyst."""
        return self._memory().cache_info()

    def cache_clear(self) -> None:
        """Clear the caches of all analysts."""
        self._memories.clear()

    def _memory(self) -> Any:
        whose = _whose.get()
        memory = self._memories.get(whose)
        if memory is None:
            memory = self._memories[whose] = lru_cache(self._most)(self.__wrapped__)
            if len(self._memories) > MOST:
                self._memories.popitem(last=False)
        return memory


def remembered(
    most: int,
) -> Callable[[Callable[Arguments, Value]], MemoizedFunction[Arguments, Value]]:
    """Return a decorator that caches the last `most` results of a pure function."""
    return lambda function: MemoizedFunction(function, most)
