"""What was worked out once is remembered, for each for whom it is: how soon a question is planned must not tell one
what another has asked. Where nobody is named, as in a session of one's own, it is remembered for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

MOST = 32
"""For how many at once; whoever has asked first is forgotten first."""
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
_whose: ContextVar[str] = ContextVar("whose", default="")


@contextmanager
def remembered_for(whose: str) -> Iterator[None]:
    """What is remembered here is so for one alone."""
    before = _whose.set(whose)
    try:
        yield
    finally:
        _whose.reset(before)


class MemoizedFunction(Generic[Arguments, Value]):
    """A function of values alone, as of `functools.lru_cache`."""

    def __init__(self, function: Callable[Arguments, Value], most: int) -> None:
        self.__wrapped__ = function
        self._most = most
        self._memories: OrderedDict[str, Any] = OrderedDict()
        update_wrapper(self, function)

    def __call__(self, *args: Arguments.args, **named: Arguments.kwargs) -> Value:
        value: Value = self._memory()(*args, **named)
        return value

    def cache_info(self) -> Any:
        """How often something was remembered, for whom it is now."""
        return self._memory().cache_info()

    def cache_clear(self) -> None:
        """Forget it for all."""
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
    """A decorator of functions of values alone, whose last so many results are remembered."""
    return lambda function: MemoizedFunction(function, most)
