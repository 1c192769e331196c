"""The prompt: statements over several lines, commands, and errors that do not end it."""

import re
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from dpsql.core.ledger.ledger import Budget
from dpsql.session.session import Session
from dpsql.session.tables.table import Table
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.commands import COMMANDS
from dpsql.shell.prompt.prompt import FIRST, MORE, Prompt
from dpsql.shell.shell import Shell

COUNT = "SELECT COUNT(*) AS n FROM people"
Line = str | type[BaseException] | BaseException


class Talk:
    """A prompt that was fed lines (an exception stands for a key such as Ctrl-C) until they ended."""

    def __init__(self, asker: Asker, lines: tuple[Line, ...], capsys: pytest.CaptureFixture[str]) -> None:
        self.prompts: list[str] = []
        self.remembered: list[str] = []
        self._lines: Iterator[Line] = iter(lines)
        self.code = Prompt(Shell(asker, interactive=True, most_rows=60), "1.2.3", self).run()
        self.out, self.err = capsys.readouterr()
        self.banner, _, self.shown = self.out.partition("\n")
        self.session = asker.session

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, EOFError)
        if isinstance(line, str):
            return line
        raise line

    def remember(self, statement: str) -> None:
        self.remembered.append(statement)

    @property
    def asked(self) -> list[str]:
        """The queries that were charged."""
        return [entry.label for entry in self.session.ledger()]


Talks = Callable[..., Talk]


@pytest.fixture
def session() -> Session:
    frame = pd.DataFrame({"age": [40] * 300, "city": ["Lyon"] * 300, "name": ["Ann"] * 300})
    people = Table(frame, bounds={"age": (0, 100)}, keys={"city": ["Brest", "Lyon"]}, nullable={"age": False})
    return Session({"people": people}, budget=Budget(3, 1e-6))


@pytest.fixture
def talk(session: Session, capsys: pytest.CaptureFixture[str]) -> Talks:
    """A talk in which each query spends epsilon 1."""
    return lambda *lines: Talk(Asker(session, epsilon=1.0), lines, capsys)


def test_the_banner_says_what_can_be_asked_and_spent(talk: Talks):
    done = talk()
    assert done.code == 0
    assert done.banner == ("dpsql 1.2.3 | table people | protects one row | budget epsilon 3, delta 1e-06 | .help")


def test_the_banner_names_all_tables_and_the_other_relation(capsys: pytest.CaptureFixture[str]):
    tables = {"a": pd.DataFrame({"x": [1]}), "b\n": pd.DataFrame({"x": [1]})}
    done = Talk(Asker(Session(tables, budget=Budget(1), neighbours="bounded")), (), capsys)
    assert "| tables a, b\\n | protects what one row of each table says | budget epsilon 1 |" in done.banner


def test_a_statement_ends_at_its_semicolon(talk: Talks):
    done = talk("SELECT COUNT(*) AS n", "", "FROM people -- no end yet;", "WHERE city = ';'", ";", COUNT + ";")
    assert done.prompts == [FIRST, MORE, MORE, MORE, MORE, FIRST, FIRST]
    assert done.asked == ["SELECT COUNT(*) AS n\n\nFROM people -- no end yet;\nWHERE city = ';'", COUNT]
    assert len(re.findall(r"^\| +n \| 95 % \|$", done.shown, re.MULTILINE)) == 2
    assert done.err == ""


def test_what_was_spent_is_shown_with_each_answer(talk: Talks):
    done = talk(f"{COUNT};", f"{COUNT};")
    assert re.findall(r"^spent epsilon 1 · left epsilon (\d) of 3", done.shown, re.MULTILINE) == ["2"]
    assert re.findall(r"^answered before: spent nothing · left epsilon (\d) of 3", done.shown, re.MULTILINE) == ["2"]


def test_several_statements_on_a_line(talk: Talks):
    done = talk(f"{COUNT}; {COUNT}; SELECT", "AVG(age) FROM people; ;")
    assert done.prompts == [FIRST, MORE, FIRST]
    assert done.asked == [COUNT, "SELECT\nAVG(age) FROM people"]


def test_an_error_is_shown_and_costs_nothing_and_the_prompt_goes_on(talk: Talks):
    done = talk("SELECT SUM(agee) FROM people;", f"{COUNT};")
    assert done.err == (
        'UnknownColumn: no column "agee" in people. Did you mean "age"?\n'
        "  LINE 1: SELECT SUM(agee) FROM people\n"
        "                     ^^^^\n"
    )
    assert done.asked == [COUNT]


def test_what_follows_an_error_on_its_line_is_dropped(talk: Talks):
    done = talk(f"SELECT 1; {COUNT}; SELECT 'open", f"{COUNT};")
    assert done.prompts == [FIRST, FIRST, FIRST]
    assert done.asked == [COUNT]


def test_the_budget_ends_but_not_the_prompt(talk: Talks):
    done = talk(*[f"{COUNT} WHERE age < {age};" for age in range(4)], ".budget")
    assert done.err.startswith("BudgetExceeded: this query costs epsilon 1 but 0 is left")
    assert "left    epsilon 0, delta 5e-07\nkept    delta 5e-07, which converts rho to epsilon" in done.shown


def test_ctrl_c_drops_what_was_typed(talk: Talks):
    done = talk("SELECT 'half", KeyboardInterrupt, f"{COUNT};", KeyboardInterrupt)
    assert done.prompts == [FIRST, "  ...'> ", FIRST, FIRST, FIRST]
    assert (done.code, done.asked, done.err) == (0, [COUNT], "")


def test_ctrl_c_during_a_query_goes_back_to_the_prompt(session: Session, capsys: pytest.CaptureFixture[str]):
    class Slow(Asker):
        def ask(self, _sql: str, **_how: object) -> None:
            raise KeyboardInterrupt

    done = Talk(Slow(session), ("SELECT 1; SELECT 2; SELECT", ".budget"), capsys)
    assert done.prompts == [FIRST, FIRST, FIRST]
    assert done.shown.lstrip().startswith("budget")


def test_a_line_that_is_no_text_is_told(talk: Talks):
    done = talk(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), f"{COUNT};")
    assert (done.err, done.asked) == ("That line is not text in UTF-8.\n", [COUNT])


@pytest.mark.parametrize("word", [".quit", ".exit", "quit", "exit;", " .quit ", "exit"])
def test_leaving(word: str, talk: Talks):
    done = talk(word, f"{COUNT};")
    assert (done.code, done.prompts, done.asked) == (0, [FIRST], [])


def test_blank_lines_and_comments_ask_nothing(talk: Talks):
    done = talk("", "  ", ";", "-- note", "/* note */")
    assert set(done.prompts) == {FIRST}
    assert done.shown.strip() == ""


@pytest.mark.parametrize("word", [".help", "help", "help;"])
def test_help_lists_every_command(word: str, talk: Talks):
    shown = talk(word).shown
    assert [each.name for each in COMMANDS if f"\n{each.name}" not in shown] == []


def test_tables_and_schema_tell_declared_facts(talk: Talks):
    assert talk(".tables").shown.strip() == "people  3 columns  each row is one person's"
    expected = (
        "people (each row is one person's)\n"
        "  age   integer not null  from 0 to 100\n  city  text              keys 'Brest', 'Lyon'\n  name  text"
    )
    assert talk(".schema").shown.strip() == expected
    assert talk(".schema PEOPLE").shown.strip() == expected


def test_many_keys_are_shortened_and_control_characters_escaped(capsys: pytest.CaptureFixture[str]):
    frame = pd.DataFrame({"a\x1b": ["x"]})
    session = Session({"t": Table(frame, keys={"a\x1b": [f"\x1b{i}" for i in range(25)]})}, budget=Budget(1))
    shown = Talk(Asker(session), (".schema",), capsys).shown
    assert "\x1b" not in shown
    assert "a\\x1b" in shown
    assert "'\\x1b19' and 5 more" in shown


def test_budget_before_and_after(talk: Talks):
    shown = talk(".budget", f"{COUNT};", ".budget").shown
    assert "budget  epsilon 3, delta 1e-06\nspent   epsilon 0 in 0 queries\nleft    epsilon 3, delta 5e-07\n" in shown
    assert "spent   epsilon 1 in 1 query\nleft    epsilon 2, delta 5e-07\n" in shown


@pytest.mark.parametrize("line", [f".explain {COUNT}", f".explain {COUNT};", f"EXPLAIN PRIVACY {COUNT};"])
def test_explaining_is_free(line: str, talk: Talks):
    done = talk(line)
    assert done.shown.startswith("Protects   one row of people")
    assert done.asked == []


def test_epsilon_and_delta_for_each_query(session: Session, capsys: pytest.CaptureFixture[str]):
    lines = (f"{COUNT};", ".epsilon", ".epsilon 0.25", f"{COUNT};", ".delta", ".delta 1e-7")
    done = Talk(Asker(session), lines, capsys)
    assert "epsilon is missing" in done.err
    assert done.err.endswith("  Add .epsilon 1, or less for stronger privacy.\n")
    assert "no epsilon is set" in done.shown
    assert "spent epsilon 0.25 " in done.shown
    assert done.shown.strip().endswith("each query may spend delta 0\neach query may spend delta 1e-07")


def test_a_delta_lets_unlisted_groups_show(talk: Talks):
    unlisted = "SELECT name, COUNT(*) FROM people GROUP BY name"
    refused = talk(f"{unlisted};")
    assert refused.err.startswith("UnknownGroups: ")
    assert refused.asked == []
    assert talk(".delta 5e-7", f"{unlisted};").asked == [unlisted]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".tabels", 'InvalidArgument: no command ".tabels". Did you mean ".tables"?\n  .help lists the commands.\n'),
        (".", 'InvalidArgument: no command "."'),
        (".tables all", "InvalidArgument: .tables takes nothing after it, got 'all'."),
        (".schema peple", 'InvalidArgument: no table "peple". Did you mean "people"?'),
        (".epsilon much", "InvalidArgument: epsilon must be a number, got 'much'."),
        (".epsilon 0", "InvalidPrivacyParameter: epsilon must be a finite number > 0"),
        (".epsilon nan", "InvalidPrivacyParameter: epsilon must be a finite number > 0, got nan."),
        (".delta 1", "InvalidPrivacyParameter: delta must be at least 0 and below 1"),
        (".explain", "InvalidArgument: explain what?"),
        (".explain SELECT age FROM people", "RawColumn: "),
        (".explain SELECT 1; SELECT 2", "UnsupportedSQL: one query at a time"),
    ],
)
def test_a_command_gone_wrong(line: str, message: str, talk: Talks):
    done = talk(line, ".epsilon")
    assert done.err.startswith(message)
    assert done.shown.strip() == "each query spends epsilon 1"
