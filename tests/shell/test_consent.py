"""A large spend is asked about: what is large, who is asked, what was confirmed before."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.errors import BudgetExceeded, ConfirmationRequired, InvalidPrivacyParameter
from dpsql.shell.cli import Exit, main
from dpsql.shell.notebook.magic import Magic
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.consent import Consent, asked_on_a_line

COUNT = "SELECT COUNT(*) AS n FROM t"
HIDDEN = "SELECT city, COUNT(*) FROM t GROUP BY city"
FRAME = pd.DataFrame({"x": [1] * 400, "city": ["a", "b"] * 200})


def session(epsilon: float = 3, delta: float = 0, **more: object) -> dpsql.Session:
    return dpsql.Session({"t": FRAME}, budget=dpsql.Budget(epsilon, delta), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "epsilon", "large"),
    [
        (3, 1.5, False),
        (3, 1.6, True),
        (10, 2, False),
        (10, 2.1, True),
        (4, 2, False),
        (0.1, 0.05, False),
        (0.1, 0.06, True),
    ],
)
def test_more_than_half_of_what_is_left_or_above_two_is_large(budget: float, epsilon: float, large: bool):
    asker = Asker(session(budget), epsilon, consent=Consent())
    if large:
        with pytest.raises(ConfirmationRequired) as raised:
            asker.ask(COUNT)
        assert "Nothing was run, nothing was charged" in str(raised.value)
        assert asker.session.ledger() == ()
    else:
        asker.ask(COUNT)


def test_what_is_left_counts_and_not_the_whole():
    asker = Asker(session(3), 1, consent=Consent())
    asker.ask(COUNT)
    asker.ask(f"{COUNT} WHERE x = 1")  # half of the two that were left
    with pytest.raises(ConfirmationRequired, match="more than half of what is left"):
        asker.ask(f"{COUNT} WHERE x = 2")


def test_rho_is_asked_about_too():
    held = session(3, 1e-6)
    with pytest.raises(ConfirmationRequired):
        Asker(held, rho=float(held.remaining.rho or 0) * 0.6, consent=Consent()).ask(COUNT)
    Asker(held, rho=float(held.remaining.rho or 0) * 0.4, consent=Consent()).ask(COUNT)


@pytest.mark.parametrize(("delta", "large"), [(5e-7, True), (3e-7, True), (2.5e-7, False), (1e-7, False)])
def test_more_than_half_of_the_delta_that_is_left_is_a_large_spend(delta: float, large: bool):
    """Of 1e-6 half is kept to convert rho to epsilon."""
    asker = Asker(session(3, 1e-6), 0.5, delta=delta, consent=Consent())
    if not large:
        asker.ask(HIDDEN)
        return
    with pytest.raises(ConfirmationRequired, match="whose delta is more than half of what is left .* delta 5e-07"):
        asker.ask(HIDDEN)
    assert asker.session.ledger() == ()
    Asker(asker.session, 0.5, delta=delta, consent=Consent(up_to=0.5)).ask(HIDDEN)


def test_delta_that_a_query_has_no_use_for_is_no_spend():
    Asker(session(3, 1e-6), 0.5, delta=5e-7, consent=Consent()).ask(COUNT)


@pytest.mark.parametrize(("epsilon", "passes"), [(1, True), (1.1, False)])
def test_what_is_above_the_most_is_refused_though_it_was_confirmed(epsilon: float, passes: bool):
    asker = Asker(session(5), epsilon, consent=Consent(everything=True, at_most=1))
    if passes:
        asker.ask(COUNT)
        asker.ask(COUNT)  # again, free
        return
    with pytest.raises(InvalidPrivacyParameter, match="epsilon 1.1, which is above --max-epsilon 1. Nothing was run"):
        asker.ask(COUNT)
    assert asker.session.ledger() == ()


def test_max_epsilon_on_the_command_line_and_in_a_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    words = [str(tmp_path / "t.csv"), "--budget", "10", "--yes", "--max-epsilon", "1", "-c", COUNT, "--epsilon"]
    assert main([*words, "1"]) == Exit.OK
    assert main([*words, "1.5"]) == Exit.REFUSED
    assert main([*words, "1", "--max-epsilon", "nan"]) == Exit.USAGE
    assert "epsilon 1.5 is above the 1 that one query may spend here" in capsys.readouterr().err
    held = session(10)
    magic = Magic({"held": held})
    magic.line(f"--epsilon 1 --max-epsilon 1 {COUNT}")
    with pytest.raises(InvalidPrivacyParameter, match="above --max-epsilon 1"):
        magic.line(f"--epsilon 1.5 --yes --max-epsilon 1 {COUNT}")
    assert len(held.ledger()) == 1


@pytest.mark.parametrize("free", [f"EXPLAIN PRIVACY {COUNT}", COUNT])
def test_explanations_and_replays_ask_nothing(free: str):
    asker = Asker(session(3), 3, consent=Consent())
    asker.session.query(COUNT, epsilon=3)  # a session never asks
    spent = asker.session.spent
    asker.ask(free)
    asker.explain(f"{COUNT} WHERE x = 3")
    assert asker.session.spent == spent


def test_a_fresh_draw_is_no_replay():
    asker = Asker(session(3), 1.5, consent=Consent())
    asker.ask(COUNT)
    with pytest.raises(ConfirmationRequired):
        asker.ask(COUNT, fresh=True)


def test_a_budget_that_does_not_suffice_is_said_before_a_question():
    asked: list[str] = []
    asker = Asker(session(1), 1.5, consent=Consent(ask=lambda text: not asked.append(text)))
    with pytest.raises(BudgetExceeded):
        asker.ask(COUNT)
    assert asked == []


@pytest.mark.parametrize(("up_to", "epsilon", "passes"), [(2.5, 2.5, True), (2.5, 2.6, False), (0.5, 0.4, True)])
def test_what_was_confirmed_up_to_passes(up_to: float, epsilon: float, passes: bool):
    asker = Asker(session(2.8), epsilon, consent=Consent(up_to=up_to))
    if passes:
        asker.ask(COUNT)
        return
    with pytest.raises(ConfirmationRequired):
        asker.ask(COUNT)


def test_max_epsilon_still_refuses():
    asker = Asker(session(3, max_epsilon=1), 2, consent=Consent(everything=True))
    with pytest.raises(InvalidPrivacyParameter):
        asker.ask(COUNT)


@pytest.mark.parametrize(("line", "passes"), [("y", True), (" YES ", True), ("", False), ("no", False), (None, False)])
def test_a_person_is_asked(line: str | None, passes: bool):
    prompts: list[str] = []

    def read(prompt: str) -> str:
        prompts.append(prompt)
        if line is None:
            raise EOFError
        return line

    asker = Asker(session(3), 3, consent=Consent(ask=asked_on_a_line(read)))
    if passes:
        asker.ask(COUNT)
    else:
        with pytest.raises(ConfirmationRequired):
            asker.ask(COUNT)
    assert prompts == [
        "This query would spend epsilon 3, which is more than half of what is left (epsilon 3). Spend it? [y/N] "
    ]
    assert len(asker.session.ledger()) == passes


Runs = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    (tmp_path / "t.csv").write_text("\n".join(["x", *["1"] * 400]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    def command(*argv: str) -> tuple[int, str]:
        return main(["t.csv", "--budget", "3", *argv]), capsys.readouterr().err

    return command


def test_a_batch_stops_with_its_own_code(run: Runs):
    code, told = run("--epsilon", "2.5", "-c", COUNT)
    assert code == Exit.UNCONFIRMED == 4
    assert "ConfirmationRequired: this query would spend epsilon 2.5" in told
    assert "--yes-up-to 2.5 lets it through, --yes whatever it costs." in told
    assert run("--epsilon", "2.5", "--yes-up-to", "2.4", "-c", COUNT)[0] == Exit.UNCONFIRMED
    assert run("--epsilon", "2.5", "--yes-up-to", "2.5", "-c", COUNT)[0] == Exit.OK
    assert run("--epsilon", "2.5", "--yes", "-c", COUNT)[0] == Exit.OK
    assert run("--epsilon", "3.5", "-c", COUNT)[0] == Exit.BUDGET
    assert run("--epsilon", "2.5", "-c", f"EXPLAIN PRIVACY {COUNT}")[0] == Exit.OK
    assert run("--epsilon", "1", "--yes-up-to", "-1", "-c", COUNT)[0] == Exit.USAGE


def test_a_notebook_names_its_option():
    pytest.importorskip("IPython")
    held = session(3)
    magic = Magic({"held": held})
    magic.line("connect held")
    with pytest.raises(ConfirmationRequired, match="--yes"):
        magic.cell("--epsilon 3", COUNT)
    with pytest.raises(ConfirmationRequired):
        magic.cell("--epsilon 3 --yes-up-to 2", COUNT)
    assert held.ledger() == ()
    assert magic.cell("--epsilon 3 --yes", COUNT) is not None
