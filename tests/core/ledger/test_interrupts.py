"""A KeyboardInterrupt at any point of a query leaves nobody waiting: neither threads of the session nor other sessions.

Python lets an interrupt in when a function begins, after a call and when a loop goes round. Each of these points in the
functions that take a turn, claim and charge is tried, by a trace function that raises there."""

import dis
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.ledger import Ledger

TABLE = dpsql.Table(pd.DataFrame({"x": [1, 2, 3]}), version="1")
COUNT = "SELECT COUNT(*) AS n FROM t"
WATCHED = {
    "query",
    "_answer",
    "_released",
    "_released_in_turn",
    "turn",
    "_drawn",
    "claim",
    "_writing",
    "_charge",
    "keep",
    "__exit__",
}
FILES = ("session.py", "program_questions.py", "replay.py", "ledger.py", "ledger_book.py", "contextlib.py")
LETS_IN = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}


class Interrupter:
    """Raises KeyboardInterrupt at the point of that number; `met` tells whether there was one."""

    def __init__(self, number: int) -> None:
        self.number, self.points, self.met = number, 0, ""
        self.before: dict[FrameType, str] = {}
        self.names: dict[CodeType, dict[int, str]] = {}

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.endswith(FILES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and code.co_name in WATCHED:
            if code not in self.names:
                self.names[code] = {each.offset: each.opname for each in dis.get_instructions(code)}
            if self.before.get(frame) in LETS_IN:
                self.points += 1
                if self.points == self.number:
                    self.met = f"{Path(code.co_filename).name}:{frame.f_lineno}"
                    raise KeyboardInterrupt
            self.before[frame] = self.names[code][frame.f_lasti]
        return self


def session(ledger: Path) -> dpsql.Session:
    return dpsql.Session({"t": TABLE}, budget=dpsql.Budget(1000), ledger=ledger)


class Waits(Exception):
    """Somebody waits for a claim."""


def waits(*_: object) -> None:
    raise Waits


def left_waiting(folder: Path) -> Iterator[str]:
    """Where an interrupt left somebody waiting, and who. `Ledger._wait` is `waits`."""
    for number in range(1, 10_000):
        interrupter = Interrupter(number)
        with session(folder / f"{number}.ledger") as asked, session(folder / f"{number}.ledger") as other:
            asked.explain(COUNT, epsilon=1)
            before, _ = sys.gettrace(), sys.settrace(interrupter)
            try:
                asked.query(COUNT, epsilon=1)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
            if not interrupter.met:
                assert number > 30  # there are points
                return
            for who, each in (("the session", asked), ("another", other)):
                answers: list[object] = []
                thread = threading.Thread(target=_ask, args=(each, answers), daemon=True)
                thread.start()
                thread.join(20)
                if not answers:
                    yield f"{interrupter.met}: {who}"
                    return


def _ask(session: dpsql.Session, answers: list[object]) -> None:
    with suppress(Waits):
        answers.append(session.query(COUNT, epsilon=1))


def test_nobody_is_left_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ledger, "_wait", waits)
    assert list(left_waiting(tmp_path)) == []


def test_a_claim_that_is_not_given_up_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ledger, "_wait", waits)
    monkeypatch.setattr(Ledger, "give_up", lambda *_: None)
    assert list(left_waiting(tmp_path)) != []
