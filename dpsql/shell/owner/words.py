"""Which words of the command line are commands, and how one is run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

COMMANDS = ("init", "check", "explain", "cost", "rehearse", "ledger", "access", "serve")
"""A file of such a name is written ./ledger."""


def run_command(argv: Sequence[str]) -> int | None:
    """The exit code of the command that stands first; None where none does. Raises what it raises: DPSQLErrors of the
    command line, of files and of schemas, and SystemExit for --help."""
    if not argv or argv[0] not in COMMANDS:
        return None
    code: int = import_module(f"dpsql.shell.owner.{argv[0]}").run(argv[1:])
    return code
