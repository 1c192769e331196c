"""Planted lies about what is for owners alone and about engines: each is caught by a check that is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dpsql import testing
from dpsql.executors import base
from dpsql.session import query as single_query
from dpsql.session import session as sessions
from tests import test_testing
from tests.toys import test_engine

Patch = pytest.MonkeyPatch


def ask_no_one_whose_session_it_is(patch: Patch) -> None:
    patch.setattr(testing, "_check_owner", lambda *_: None)


def draw_by_queries_that_are_charged(patch: Patch) -> None:
    import pandas as pd

    def insecure_draws(session: Any, sql: str, runs: int, **terms: Any) -> Any:
        answers = [session.query(sql, fresh=True, **terms).df for _ in range(runs)]
        return pd.concat(answers, keys=range(runs), names=["run", "row"])

    patch.setattr(test_testing, "insecure_draws", insecure_draws)


def draw_once_and_give_it_again(patch: Patch) -> None:
    import pandas as pd

    honest = testing.insecure_draws

    def insecure_draws(session: Any, sql: str, runs: int, **terms: Any) -> Any:
        one = honest(session, sql, 1, **terms).loc[0]
        return pd.concat([one] * runs, keys=range(runs), names=["run", "row"])

    patch.setattr(test_testing, "insecure_draws", insecure_draws)


def forget_the_key(patch: Patch) -> None:
    honest = testing._executed
    patch.setattr(testing, "_executed", lambda session, plan, _key: honest(session, plan, bytes(32)))


def never_ask_what_an_engine_lacks(patch: Patch) -> None:
    for room in (sessions, single_query):
        patch.setattr(room, "check_engine", lambda *_: None)


def run_all_on_one_engine(patch: Patch) -> None:
    def executor_of(stores: Mapping[str, Any], *_: Any) -> Any:
        return base.ENGINES["pandas"].executor(stores)

    from dpsql.session import run

    patch.setattr(run, "executor_of", executor_of)


def let_engines_mix(patch: Patch) -> None:
    patch.setattr(sessions, "engine_for", lambda private, _word: next(map(base.engine_of, private.values())))


def _charges_nothing() -> None:
    test_testing.test_nothing_is_charged_written_or_kept(Path(), False)


def _refuses_analysts() -> None:
    with Patch.context() as patch:
        test_testing.test_an_analysts_session_is_refused_before_a_row_is_read(test_testing.CALLS["draws"], patch)


def _with_the_toy(check: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        with Patch.context() as patch:
            patch.setattr(base, "ENGINES", {**base.ENGINES, "lists": test_engine.ListEngine()})
            check()

    return run


LIES: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (ask_no_one_whose_session_it_is, _refuses_analysts),
    (draw_by_queries_that_are_charged, _charges_nothing),
    (draw_once_and_give_it_again, test_testing.test_draws_are_as_the_answers_are),
    (forget_the_key, test_testing.test_the_key_decides_which_rows_are_kept),
    (never_ask_what_an_engine_lacks, _with_the_toy(test_engine.test_what_it_lacks_is_refused_before_it_is_charged)),
    (run_all_on_one_engine, _with_the_toy(test_engine.test_a_session_runs_it)),
    (let_engines_mix, _with_the_toy(test_engine.test_tables_of_two_engines_are_not_asked_together)),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=[lie.__name__ for lie, _ in LIES])
def test_a_lie_is_caught(lie: Callable[[Patch], None], check: Callable[[], None]):
    check()
    with Patch.context() as patch:
        lie(patch)
        with pytest.raises(BaseException) as caught:
            check()
    assert not isinstance(caught.value, KeyboardInterrupt | SystemExit)
