"""How much of dpsql a plain question enters: files and functions, at first and when its text is known.

python benchmarks/entered.py [--root CHECKOUT] [--list]

    SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM adult GROUP BY sex

cold: the first question of a process; warm: the same text again, drawn anew. Neither is printed. What modules do while
they are loaded is not counted, nor what dataclasses make.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent.parent
SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM adult GROUP BY sex"
Function = tuple[str, str, int]
"""A file below dpsql/, a function's name, and its line."""


def asker() -> Callable[[], object]:
    """Asks the question about thirty made-up rows, with what their owner declares."""
    import pandas as pd

    import dpsql

    frame = pd.DataFrame({"sex": ["Female", "Male"] * 15, "age": list(range(20, 50))})
    query = dpsql.query
    return lambda: query(frame, SQL, epsilon=1, bounds={"age": (17, 90)}, keys={"sex": ["Female", "Male"]})


@contextmanager
def entered(folder: str) -> Iterator[set[Function]]:
    """The functions of the files below a folder that are called meanwhile, in this thread."""
    found: set[Function] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder) and code.co_name != "<module>":
            found.add((code.co_filename.removeprefix(folder), code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def cold_and_warm() -> dict[str, set[Function]]:
    """What is entered by the first question of this process, and by the same one again."""
    ask = asker()
    folder = str(Path(sys.modules["dpsql"].__file__ or "").parent) + os.sep
    found = {}
    for name in ("cold", "warm"):
        with entered(folder) as functions:
            ask()
        found[name] = functions
    return found


def counted(found: dict[str, set[Function]]) -> dict[str, tuple[int, int]]:
    """Files and functions."""
    return {name: (len({file for file, _, _ in each}), len(each)) for name, each in found.items()}


def loaded() -> tuple[int, int]:
    """For a fresh process: the modules of dpsql that `dpsql.query` loads, and those after a first plain question."""

    def modules() -> int:
        return sum(name.split(".")[0] == "dpsql" for name in sys.modules)

    ask = asker()
    before = modules()
    str(ask())
    return before, modules()


def main() -> None:
    parser = argparse.ArgumentParser(description="files and functions that a plain question enters")
    parser.add_argument("--root", type=Path, default=HERE, help="a checkout; this one if left out")
    parser.add_argument("--list", action="store_true", help="name the files of the warm question too")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in the process that was started
    parser.add_argument("--loaded", action="store_true", help=argparse.SUPPRESS)  # the same
    said = parser.parse_args()
    if said.loaded:
        print("modules loaded: {} with dpsql.query, {} after a first question".format(*loaded()))
    elif said.here:
        found = cold_and_warm()
        for name, (files, functions) in counted(found).items():
            print(f"{name}: {files} files, {functions} functions")
        for file in sorted({file for file, _, _ in found["warm"]}) if said.list else ():
            print(f"  {file}: {', '.join(sorted(name for each, name, _ in found['warm'] if each == file))}")
    else:
        own = [word for word in sys.argv[1:] if word == "--list"]
        for way in ("--here", "--loaded"):
            run = [sys.executable, str(HERE / "benchmarks" / "entered.py"), way, *own]
            subprocess.run(run, env=os.environ | {"PYTHONPATH": str(said.root.resolve())}, check=True)


if __name__ == "__main__":
    main()
