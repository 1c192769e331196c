"""Every lie about rows that noisy values chose is caught by the check beside it, which passes without the lie."""

from __future__ import annotations

import pytest

from tests.lies import Check, Lie, assert_caught
from tests.release.given_lies import LIES


@pytest.mark.parametrize(("lie", "check"), LIES, ids=[f"{lie.__name__}-{check.__name__}" for lie, check in LIES])
def test_each_lie_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check, honest=False)


@pytest.mark.parametrize("check", list(dict.fromkeys(check for _, check in LIES)), ids=lambda check: check.__name__)
def test_each_check_passes_on_the_honest_engine(check: Check):
    check()
