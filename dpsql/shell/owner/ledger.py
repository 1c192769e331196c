"""dpsql ledger: show, verify, export, renew, back up and restore a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsql.core.loss import PrivacyLoss
from dpsql.errors import LedgerError
from dpsql.owner.backups import backup, losses_of, restore
from dpsql.owner.ledgers import export_ledger, renew_ledger, show_ledger, verify_ledger
from dpsql.session.owner_file import Schema
from dpsql.shell.output.streams import complain, say
from dpsql.shell.parser import Parser, number, options_of

_DESCRIPTION = """\
Look at the ledger of an owner's file, set its total anew, copy it or put a copy back. FILE is the
schema (adult.toml) or the ledger itself (adult.ledger); of backup and restore, the copy."""

_EPILOG = """\
exit codes:
  0 done     1 verify: the ledger is not what was written     2 command line, schema or files"""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    arguments = options_of(_parser(), argv)
    code: int = arguments.act(arguments)
    return code


def _parser() -> Parser:
    parser = Parser.of("dpsql ledger", _DESCRIPTION, _EPILOG)
    actions = parser.add_subparsers(
        required=True, metavar="show | verify | export | renew | backup | restore", dest="action"
    )

    def action(name: str, act: Any, purpose: str) -> Any:
        sub = actions.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        sub.set_defaults(act=act)
        sub.add_argument("file", type=Path, metavar="SCHEMA" if name == "renew" else "FILE")
        return sub.add_argument

    action("show", _show, "the budget, what is spent and left, and every charge")
    add = action("verify", _verify, "check every line and hash; print the anchor")
    add("--anchor", metavar="TEXT", help="an earlier anchor: what the ledger held then has to be there still")
    action("export", _export, "all of it as JSON, with exact fractions")
    add = action("renew", _renew, "set a new total; what is spent stays spent")
    add("--epsilon", type=number, required=True, metavar="X", help="the whole, what is spent already included")
    add("--delta", type=number, metavar="X", help="the same of delta (default: as it is)")
    add("--reason", required=True, metavar="TEXT", help="why; it stays in the ledger")
    add = action("backup", _backup, "copy the ledger of a schema to FILE, while it is in use")
    add("--schema", type=Path, required=True, metavar="TOML", help="the owner's file")
    add = action("restore", _restore, "put a copy in the ledger's place; all that was left then is charged")
    add("--schema", type=Path, required=True, metavar="TOML", help="the owner's file")
    add(
        "--spent-since",
        action="append",
        metavar="NAME=X",
        help="what that analyst has spent since the copy, X or X:DELTA, in place of all that was left; for each of "
        "them; without NAME= for a ledger without shares",
    )
    return parser


def _backup(arguments: Any) -> int:
    say(f"copied; anchor {backup(Schema.from_toml(arguments.schema), arguments.file)}")
    return 0


def _restore(arguments: Any) -> int:
    stated = None if arguments.spent_since is None else losses_of(arguments.spent_since)
    charged = restore(Schema.from_toml(arguments.schema), arguments.file, spent_since=stated)
    for name, loss in charged.items():
        say(f"{name or 'nobody in particular'}: charged {PrivacyLoss(*loss)}")
    return 0


def _show(arguments: Any) -> int:
    say(str(show_ledger(arguments.file)))
    return 0


def _verify(arguments: Any) -> int:
    try:
        anchor = verify_ledger(arguments.file, arguments.anchor)
    except LedgerError as error:
        complain(error)
        return 1
    say(f"whole; anchor {anchor}")
    return 0


def _export(arguments: Any) -> int:
    say(export_ledger(arguments.file))
    return 0


def _renew(arguments: Any) -> int:
    lines = renew_ledger(arguments.file, epsilon=arguments.epsilon, delta=arguments.delta, reason=arguments.reason)
    report = show_ledger(arguments.file)
    say(f"the total is now {report.budget.loss}; spent {report.spent}, left {report.left}")
    if lines:
        say(f"Now write in [budget] of {arguments.file.name}: {' and '.join(lines)}")
    return 0
