"""dpsql check: all mistakes of a schema file; with --data also of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpsql.owner.data_checks import report_data
from dpsql.owner.mistakes import check
from dpsql.owner.todos import open_todos
from dpsql.session.advice import in_toml
from dpsql.shell.output.streams import say
from dpsql.shell.parser import Parser, options_of

_DESCRIPTION = """\
Report all mistakes of an owner's file, each with table, setting and line, and what is still to
be decided: whose row it is, and comments that say TODO. Of data files the header is read, and
rows of text until each column has a cell that fits its type. With --data all rows are looked
at, for the owner's eyes only: what is told then is exact, and protects nobody."""

_EPILOG = """\
exit codes:
  0 nothing to report     1 open TODOs, or with --data rows that are not as declared     2 mistakes"""

EYES_ONLY = "FOR THE OWNER'S EYES ONLY: exact numbers of private rows, protected by no noise."


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    parser = Parser.of("dpsql check", _DESCRIPTION, _EPILOG)
    parser.add_argument("schema", type=Path, metavar="SCHEMA", help="the owner's file")
    parser.add_argument("--data", action="store_true", help="look at the rows too")
    arguments = options_of(parser, argv)
    mistakes = check(arguments.schema)
    for mistake in mistakes:
        say(str(replace(mistake, hint=in_toml(mistake.hint))))
    if mistakes:
        count = len(mistakes)
        say(f"{arguments.schema.name}: {count} {'mistake' if count == 1 else 'mistakes'}")
        return 2
    todos = open_todos(arguments.schema)
    for todo in todos:
        say(str(todo))
    if todos:
        number = f"{len(todos)} open {'TODO' if len(todos) == 1 else 'TODOs'}"
        say(f"{arguments.schema.name}: {number}: decide each, or delete its comment")
    if not arguments.data:
        say(f"{arguments.schema.name}: no mistakes")
        return 1 if todos else 0
    say(EYES_ONLY)
    report = report_data(arguments.schema)
    findings = report.findings
    for line in (*findings, *report.repeats):
        say(str(line))
    if not findings:
        say(f"{arguments.schema.name}: every row is as declared")
    return 1 if findings or todos else 0
