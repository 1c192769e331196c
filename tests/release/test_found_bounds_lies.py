"""Every mutation of bounds that are chosen by default is caught by the check next to it, which passes without it."""

from __future__ import annotations

import pytest

from tests.lies import Check, Lie, assert_caught
from tests.release.found_bounds_lies import LIES


@pytest.mark.parametrize(("lie", "check"), LIES, ids=[lie.__name__ for lie, _ in LIES])
def test_each_mutation_is_caught(lie: Lie, check: Check) -> None:
    assert_caught(lie, check, honest=False)


@pytest.mark.parametrize("check", list(dict.fromkeys(check for _, check in LIES)), ids=lambda check: check.__name__)
def test_each_check_passes_on_the_honest_engine(check: Check) -> None:
    check()
