"""The commands of the command line: each a module with `run(argv)`, which prints and gives the exit code."""
