"""dpsql serve: HTTP server for analysts' queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsql.remote.server.run import ServerSetup, serve
from dpsql.shell.parser import Parser, options_of

_DESCRIPTION = """\
Serve an owner's file to those whom dpsql access has given tokens: the data stay here, and
an analyst gets what a release shows. Plain HTTP on this machine alone, else HTTPS. A line of
JSON to standard error for each query; SIGTERM lets running queries end."""

_EPILOG = """\
example:
  dpsql access add alice --schema shop.toml --epsilon 1 --tables orders,customers
  dpsql serve shop.toml

exit codes:
  0 stopped     2 command line, schema or files"""

_WORDS = {
    "grid": "the points of time at which answers appear: 250ms, or off",
    "min_epsilon": "the least that a query may spend",
    "max_runs": "how many queries a share may pay for",
    "workers": "how many processes run queries",
    "deadline": "seconds that one run may take",
    "hosts": "names by which the server may be asked, A:1,B:2",
    "limits": "of requests at once: on, or off",
    "share_answers": "what one analyst has paid is free for others: true or false",
    "overlap": "shares may come to more than the budget: true or false",
    "trust_proxy": "addresses of programs in front of it, A,B",
    "user_header": "the header in which they name who asks",
    "worker_memory": "what a process that holds tables may have: 4GB (if left out, as much as there is)",
    "metrics": "a Unix socket for monitoring, for its owner alone",
}
"""The settings of [server] in the schema file, as options, which take precedence."""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    parser = Parser.of("dpsql serve", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add("schema", type=Path, metavar="SCHEMA", help="the owner's file, with [budget]; [server] has more words")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: this machine alone)")
    add("--port", type=int, default=8443, metavar="N", help="the port (default 8443; 0: a free one)")
    add("--tls-cert", type=Path, metavar="FILE", help="a certificate, for HTTPS")
    add("--tls-key", type=Path, metavar="FILE", help="its key")
    for word, purpose in _WORDS.items():
        add(f"--{word.replace('_', '-')}", metavar="WORD", help=f"{purpose} (as [server] {word})")
    said = options_of(parser, argv)
    words = {word: getattr(said, word) for word in _WORDS if getattr(said, word) is not None}
    serve(ServerSetup(said.schema, said.host, said.port, said.tls_cert, said.tls_key), words)
    return 0
