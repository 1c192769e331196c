"""The floors of the house: a module imports only from floors below its own, or from its own folder."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (  # folders and modules of dpsql/, lowest floor first
    ("errors", "version", "interrupted"),
    ("privacy",),
    ("schema", "schema_*", "intervals", "calendar"),
    ("sql",),
    ("analysis", "executors", "sources", "text_files"),
    ("release", "release_*", "estimates", "noise_*", "moment_intervals", "table", "public_tables"),
    (
        *("finish", "stage_values", "stages", "prepare", "result", "explain", "explain_*", "render", "notes", "answer"),
        *(
            "canonical",
            "canonical_*",
            "released_text",
            "replay",
            "partition_parts",
            "table_units",
            "opening",
            "accounting",
            "accuracy",
        ),
        *("trial", "quiet"),
    ),
    ("session", "api"),
    ("shell", "__main__", "__init__", "testing"),
)
FOLDERS = {"privacy", "sql", "analysis", "executors", "shell"}
ENTRANCES = {("__main__", "shell"), ("__init__", "shell")}  # python -m dpsql, %load_ext dpsql
GUESTS = {  # a name from outside, and the rooms or modules that may use it
    "pandas": (
        "executors",
        "sources",
        "text_files",
        "result",
        "render",
        "session",
        "api",
        "table",
        "accounting",
        "shell",
        "testing",
        "__init__",
    ),
    "sqlglot": ("sql",),
    "numpy": tuple(room for floor in FLOORS[1:] for room in floor),
    "os.urandom": ("privacy.sampling",),
    "os.getrandom": (),
    "random": (),
    "numpy.random": (),
    "secrets": (),
}


def place_of(name: str) -> tuple[int, str] | None:
    """Floor and room of a dotted name in dpsql; None if the table has no such room."""
    room = [*name.split("."), "__init__"][1]
    floors = (i for i, rooms in enumerate(FLOORS) if any(fnmatch(room, each) for each in rooms))
    return next(((floor, room) for floor in floors), None)


def names_used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, wherever it stands, and of every attribute of what was imported."""
    local = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                local[alias.asname or first] = alias.name if alias.asname else first
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                local[alias.asname or alias.name] = name
                yield node.lineno, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            if root in local:
                yield node.lineno, f"{local[root]}.{rest}"


def objection(module: str, name: str) -> str | None:
    """Why the module (a dotted name in dpsql) may not use the name; None if it may."""
    floor, room = place_of(module) or (-1, "")
    if floor < 0:
        return "stands in an unknown room: give it a floor in FLOORS"
    if name.startswith("."):
        return f"imports {name} relatively: write the full name"
    if f"{name}.".startswith("dpsql."):
        other_floor, other = place_of(name) or (len(FLOORS) - 1, "__init__")  # from dpsql import Session
        together = room == other or not {room, other} & FOLDERS or (room, other) in ENTRANCES
        if other_floor > floor or (other_floor == floor and not together):
            return f"stands on floor {floor} ({room}) and may not import {other} of floor {other_floor}"
    for guest, hosts in GUESTS.items():
        inside = any(fnmatch(room, host) or module == f"dpsql.{host}" for host in hosts)
        if f"{name}.".startswith(f"{guest}.") and not inside:
            return f"uses {guest}, which is for {', '.join(hosts) or 'no room'} alone"
    return None


def violations(module: str, source: str) -> list[str]:
    """What a module's text does that its floor forbids: each objection once, with a line that meets it."""
    found: dict[str, int] = {}
    for line, name in [(1, "builtins"), *names_used(ast.parse(source))]:
        why = objection(module, name)
        if why:
            found.setdefault(why, line)
    return [f"{module}, line {line}: {why}" for why, line in found.items()]


def test_every_module_keeps_to_its_floor():
    found = []
    for path in sorted((ROOT / "dpsql").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found += violations(module, path.read_text(encoding="utf-8"))
    assert not found, "\n".join(["modules that left their floor:", *found])


@pytest.mark.parametrize(
    ("module", "source", "words"),
    [
        ("dpsql.privacy.loss", "from dpsql.sql.plan import Scan", "import sql of floor 3"),
        ("dpsql.privacy.loss", "def f():\n    import dpsql.session", "line 2: stands on floor 1 (privacy)"),
        ("dpsql.session", "from dpsql import Session", "import __init__ of floor 8"),
        ("dpsql.errors", "if TYPE_CHECKING:\n    from dpsql import schema", "import schema of floor 2"),
        (
            "dpsql.analysis.filters",
            "from dpsql.executors.base import Executor",
            "import executors of floor 4",
        ),
        ("dpsql.sources", "from dpsql.executors import base", "import executors of floor 4"),
        ("dpsql.shell.cli", "import dpsql", "import __init__ of floor 8"),
        ("dpsql.sql.bind", "from .plan import Scan", "relatively"),
        ("dpsql.sql.bind", "if TYPE_CHECKING:\n    import pandas as pd", "line 2: uses pandas"),
        ("dpsql.release", "from pandas import DataFrame", "uses pandas"),
        ("dpsql.executors.pandas", "from sqlglot import exp", "uses sqlglot, which is for sql alone"),
        ("dpsql.errors", "import numpy as np", "uses numpy"),
        ("dpsql.privacy.sampling", "import random", "uses random, which is for no room alone"),
        (
            "dpsql.privacy.sampling",
            "import numpy as np\nnp.random.default_rng(0)",
            "line 2: uses numpy.random",
        ),
        ("dpsql.privacy.sampling", "from numpy import random as r", "uses numpy.random"),
        ("dpsql.privacy.mechanisms", "import os as o\no.urandom(8)", "line 2: uses os.urandom"),
        ("dpsql.session", "from os import urandom", "uses os.urandom"),
        ("dpsql.session", "from secrets import token_bytes", "uses secrets"),
        ("dpsql.attic", "", "unknown room"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str, words: str):
    assert any(words in each for each in violations(module, source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dpsql.privacy.sampling", "import os\nos.urandom(8)"),
        ("dpsql.session", "import os\nos.getpid()\nimport pandas"),
        (
            "dpsql.sql.bind",
            "import sqlglot\nimport numpy as np\nfrom dpsql.sql.plan import Scan\nfrom dpsql import schema",
        ),
        ("dpsql.executors.pandas", "import pandas as pd\nfrom dpsql.executors.base import Executor"),
        ("dpsql.release_rows", "import numpy\nfrom dpsql.release import Release"),
        ("dpsql.api", "from dpsql.session import Session"),
        ("dpsql.__main__", "from dpsql.shell.cli import main"),
        ("dpsql", "from dpsql.api import query\nimport random_words"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str):
    assert violations(module, source) == []
