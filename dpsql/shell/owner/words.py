"""Dispatch of subcommands."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

COMMANDS = ("init", "check", "explain", "cost", "rehearse", "ledger", "access", "serve")
"""Subcommands; a file of such a name is written ./ledger."""


def run_command(argv: Sequence[str]) -> int | None:
    """Run the subcommand in the first argument and return its exit code; None if there is none. Raises its DPSQLErrors,
    and SystemExit for --help."""
    if not argv or argv[0] not in COMMANDS:
        return None
    code: int = import_module(f"dpsql.shell.owner.{argv[0]}").run(argv[1:])
    return code
