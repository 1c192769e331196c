"""python -m dpsql: the command line."""

from __future__ import annotations

import sys

from dpsql.shell.cli import main

if __name__ == "__main__":
    sys.exit(main())
