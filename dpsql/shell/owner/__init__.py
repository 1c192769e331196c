"""Subcommands of the command line: each a module with `run(argv)`, which prints and returns the exit code."""
