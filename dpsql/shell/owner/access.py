"""dpsql access: analysts of a server, with their shares of the budget, tables, and token expiry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsql.core.ledger.shares import MOST_FAILURES
from dpsql.core.loss import show
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from dpsql.shell.output.streams import say
from dpsql.shell.parser import Parser, number, options_of

_DESCRIPTION = """\
Say who may ask the server of an owner's file (dpsql serve): a share of its budget, tables, and
a token with an end. What one analyst spends does not show to others; all shares together are
at most the budget."""

_EPILOG = """\
example:
  dpsql access add alice --schema shop.toml --epsilon 1 --delta 1e-7 --tables orders,customers --days 90

exit codes:
  0 done     2 command line, schema or files"""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    arguments = options_of(_parser(), argv)
    arguments.act(arguments, Schema.from_toml(arguments.schema))
    return 0


def _parser() -> Parser:
    parser = Parser.of("dpsql access", _DESCRIPTION, _EPILOG)
    actions = parser.add_subparsers(
        required=True, metavar="add | list | share | rotate | revoke | allow", dest="action"
    )

    def action(name: str, act: Any, purpose: str, *, named: bool = True) -> Any:
        sub = actions.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        sub.set_defaults(act=act)
        if named:
            sub.add_argument("name", metavar="NAME", help="of the analyst")
        sub.add_argument("--schema", type=Path, required=True, metavar="TOML", help="the owner's file")
        return sub.add_argument

    add = action("add", _add, "give a share and a token, which is printed once")
    add("--epsilon", type=number, required=True, metavar="X", help="the share")
    add("--delta", type=number, default=0.0, metavar="X", help="the same of delta (default 0); it stays as it is")
    add("--tables", required=True, metavar="A,B", help="which tables may be read")
    add("--days", type=number, default=90.0, metavar="N", help="until the token ends (default 90)")
    action("list", _list, "everybody's share, what is spent and left, tables, and the token's end", named=False)
    add = action("share", _share, "set the share anew; what was spent stays spent")
    add("--epsilon", type=number, required=True, metavar="X", help="the whole share, what was spent already included")
    add = action("rotate", _rotate, "another token; the old one ends now")
    add("--tables", metavar="A,B", help="which tables may be read from now on")
    add("--days", type=number, metavar="N", help="until the new token ends (default: when the old one would have)")
    action("revoke", _revoke, "take token and share away")
    action("allow", _allow, f"let somebody ask again of whose runs {MOST_FAILURES} came to no answer")
    return parser


def _add(arguments: Any, schema: Schema) -> None:
    token = access.add(
        schema,
        arguments.name,
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        tables=arguments.tables.split(","),
        days=arguments.days,
    )
    _hand_over(arguments.name, token)


def _hand_over(name: str, token: str) -> None:
    say(token)
    say(f"The token of {name}, shown this once and kept nowhere: hand it over where nobody else can read it.")


def _share(arguments: Any, schema: Schema) -> None:
    access.share(schema, arguments.name, epsilon=arguments.epsilon)
    say(f"{arguments.name} has epsilon {arguments.epsilon:g} in all.")


def _rotate(arguments: Any, schema: Schema) -> None:
    tables = None if arguments.tables is None else arguments.tables.split(",")
    _hand_over(arguments.name, access.rotate(schema, arguments.name, tables=tables, days=arguments.days))


def _revoke(arguments: Any, schema: Schema) -> None:
    access.revoke(schema, arguments.name)
    say(f"{arguments.name} has no share any more; what was spent counts.")


def _allow(arguments: Any, schema: Schema) -> None:
    access.allow(schema, arguments.name)
    say(f"{arguments.name} may ask again.")


def _list(_arguments: Any, schema: Schema) -> None:
    everybody = access.listed(schema)
    for name, report, grant in everybody:
        words = [f"share {report.holding.loss}", f"spent {report.spent} in {report.queries}", f"left {report.left}"]
        if not report.holding.current:
            words[0] = "revoked"
        words.append(f"last query {report.last[:10]}" if report.last else "no query yet")
        if grant is not None:
            words += [f"tables {', '.join(grant.tables)}", f"token until {grant.expires[:10]}"]
        elif report.holding.current:
            words.append("no token")
        if report.failures >= MOST_FAILURES:
            words.append(f"stopped: epsilon left {show(report.left.epsilon)}, dpsql access allow {name}")
        say(f"{name}: {'; '.join(words)}")
    if any(report.left.delta < report.holding.loss.delta - report.spent.delta for _, report, _ in everybody):
        say(
            "Left of delta is what queries may still spend. The accountant keeps half of each share's delta to convert "
            "Gaussian noise to epsilon (in [budget], conversion_delta sets another part of the total's)."
        )
