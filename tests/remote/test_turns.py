"""Places that are given in turn."""

from __future__ import annotations

import asyncio

import pytest

from dpsql.remote.server import fair_queue as turns_module
from dpsql.remote.server.fair_queue import Turns
from tests.lies import assert_caught


async def order_of(places: int, askers: str) -> str:
    """In which order those who ask at once have a place, each for a moment."""
    turns, had = Turns(places), ""

    async def ask(name: str) -> None:
        nonlocal had
        async with turns.of(name):
            had += name
            await asyncio.sleep(0)

    await asyncio.gather(*(ask(each) for each in askers))
    assert turns._free == places
    return had


def check_turns_are_fair() -> None:
    assert asyncio.run(order_of(1, "aaaaaabbc")) == "aabcabaaa"
    assert asyncio.run(order_of(2, "aaaaaabbc")) == "aaabcabaa"


def test_turns_are_fair():
    check_turns_are_fair()


def test_turns_in_the_order_of_arrival_are_caught():
    def all_alike(patch: pytest.MonkeyPatch) -> None:
        fair = turns_module.Turns.of
        patch.setattr(turns_module.Turns, "of", lambda turns, _: fair(turns, "all"))

    assert_caught(all_alike, check_turns_are_fair, honest=False)


def test_who_goes_while_waiting_keeps_nobody_waiting():
    async def look() -> str:
        turns, had = Turns(1), ""

        async def ask(name: str) -> None:
            nonlocal had
            async with turns.of(name):
                had += name
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(ask(each)) for each in "abcd"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.wait(tasks)
        assert turns._free == 1
        async with asyncio.timeout(1):
            await ask("e")
        return had

    assert asyncio.run(look()) == "ade"
    assert asyncio.run(cancelled_with_its_turn()) == "c"


async def cancelled_with_its_turn() -> str:
    """Whoever is given a place and goes in the same moment passes it on."""
    turns, had = Turns(1), ""

    async def ask(name: str) -> None:
        nonlocal had
        async with turns.of(name):
            had += name
            await asyncio.sleep(0)

    async with turns.of("a"):
        second, third = (asyncio.create_task(ask(each)) for each in "bc")
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second, third], timeout=1)
    return had
