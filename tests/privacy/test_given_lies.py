"""Every lie about rows that noisy values chose is caught by the check beside it, which passes without the lie."""

from __future__ import annotations

import pytest

from tests.privacy.given_lies import LIES, Check, Lie


@pytest.mark.parametrize(("lie", "check"), LIES, ids=[f"{lie.__name__}-{check.__name__}" for lie, check in LIES])
def test_each_lie_is_caught(lie: Lie, check: Check, monkeypatch: pytest.MonkeyPatch):
    lie(monkeypatch)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("check", {check for _, check in LIES}, ids=lambda check: check.__name__)
def test_each_check_passes_on_the_honest_engine(check: Check):
    check()
