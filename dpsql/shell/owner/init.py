"""dpsql init: draft of a schema file for data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsql.owner.suggestion import init
from dpsql.shell.output.streams import say
from dpsql.shell.parser import Parser, options_of
from dpsql.shell.text_options import add_text_words, text_words

_DESCRIPTION = """\
Begin an owner's file: the columns of each FILE with their types, and what is to be decided
as TODO. Types are read from the cells; no bound, key, limit or count is. A file that is
there already stays as it is."""

_EPILOG = """\
example:
  dpsql init people.csv      writes people.toml beside it

exit codes:
  0 written     2 command line or files"""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    parser = Parser.of("dpsql init", _DESCRIPTION, _EPILOG)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="people.csv is the table people")
    parser.add_argument("-o", "--output", type=Path, metavar="TOML", help="where to write")
    add_text_words(parser.add_argument)
    arguments = options_of(parser, argv)
    target = init(arguments.files, arguments.output, **text_words(arguments))
    say(f"written: {target}")
    say("Complete it where it says TODO, from what you know, not from the rows; then: dpsql check " + str(target))
    say("Its ledger will lie beside it. Keep ledgers out of version control: *.ledger in .gitignore")
    return 0
