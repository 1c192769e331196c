"""A planted lie is a patch of dpsql that breaks one rule; its check passes on the honest engine and fails under it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.release import release
from dpsql.session import prepare

Patch = pytest.MonkeyPatch
Lie = Callable[[Patch], None]
Check = Callable[[], None]


def assert_caught(lie: Lie, check: Check, *, honest: bool = True, by: type[BaseException] = AssertionError) -> None:
    """The check fails under the lie and, unless other tests say so already (`honest` is false), passes without it.

    No plan that was made before a lie is asked under it, and none that a lie made is kept. Releases are not seen to be
    paid for meanwhile (`core.payment`): that refuses many a lie by itself, and here the check has to tell."""
    if honest:
        check()
    prepare._cache.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(release, "_assert_paid", lambda _release: None)
            lie(patch)
            with pytest.raises(by):
                check()
    finally:
        prepare._cache.clear()
