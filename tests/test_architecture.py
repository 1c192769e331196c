"""The floors of the house: a module imports only from lower floors, or from its own folder."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (  # folders of dpsql/ and files of its root, lowest floor first; rooms of one floor do not meet
    ("errors", "version"),
    ("schema",),
    ("plan",),
    ("core", "postprocess"),
    ("sql", "sources", "accuracy"),
    ("executors", "accounting"),
    ("release",),
    ("answer",),
    ("session",),
    ("owner",),
    ("remote",),
    ("shell", "testing", "dbapi"),
    ("__main__", "__init__"),
)
BUDGETS = {  # the commit that raises one says why (docs/decisions/0001-package-layers.md)
    "folders in the root": 15,
    "files in the root": 7,
    "lines of code in core": 6440,  # row limits before joins; wide integers; longer import lines since sub-packages
    "lines of docstrings and comments in core": 1870,
}
GUESTS = {  # a name from outside, and the rooms or modules that may use it
    "pandas": (
        *("executors", "sources", "accounting", "answer", "session", "owner", "remote", "shell", "testing", "__init__"),
    ),
    "sqlglot": ("sql",),
    "duckdb": ("executors.duckdb.*", "postprocess.*"),
    "pyspark": ("executors.spark.*",),
    "numpy": tuple(room for floor in FLOORS[1:] for room in floor),
    "os.urandom": ("core.mechanisms.samplers",),
    "os.getrandom": (),
    "random": (),
    "numpy.random": (),
    "secrets": (),
}
ENGINES = ("executors",)
NAME_NO_ENGINE = ("core", "sql", "release", "answer")
CORE_RESTS_ON = {"core", "plan", "schema", "errors"}
CORE_LIBRARIES = {"numpy"}


def place_of(name: str) -> tuple[int, str] | None:
    """Floor and room of a dotted name in dpsql; None if the table has no such room."""
    room = [*name.split("."), "__init__"][1]
    return next(((floor, room) for floor, rooms in enumerate(FLOORS) if room in rooms), None)


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
        if room != other and other_floor >= floor:
            return f"stands on floor {floor} ({room}) and may not import {other} of floor {other_floor}"
        if room in NAME_NO_ENGINE and other in ENGINES:
            return f"names an engine ({other}), which {room} does not"
    for guest, hosts in GUESTS.items():
        inside = any(fnmatch(room, host) or fnmatch(module, f"dpsql.{host}") for host in hosts)
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


@cache
def modules() -> dict[str, Path]:
    paths = sorted((ROOT / "dpsql").rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of dpsql, and the first names of others, that a module's text imports, wherever it says so."""
    found = set()
    for _, name in names_used(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        parts = name.split(".")
        known = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        own = next((each for each in known if each in modules()), None)
        found.add(own or parts[0])
    return frozenset(found)


def reached_from(room: str) -> set[str]:
    """All that the modules of a room import, and what these import, and so on: by their texts."""
    waiting = [module for module in modules() if (place_of(module) or (0, ""))[1] == room]
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports_of(module) if module in modules() else ()
    return found


def lines_of(room: str) -> tuple[int, int]:
    """Lines of a room: those with code, and those of docstrings and comments alone."""
    code = prose = 0
    for path in (ROOT / "dpsql" / room).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        texts = {
            line
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        busy = {
            line
            for token in tokens
            if token.type not in idle
            for line in range(token.start[0], token.end[0] + 1)
            if line not in texts
        }
        comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
        code += len(busy)
        prose += len((texts | comments) - busy)
    return code, prose


def test_every_module_keeps_to_its_floor():
    found = []
    for module, path in modules().items():
        found += violations(module, path.read_text(encoding="utf-8"))
    assert not found, "\n".join(["modules that left their floor:", *found])


def private_guests(source: str) -> list[str]:
    """Private names that are imported from another module."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    return [name.name for node in imports for name in node.names if re.match("_(?!_)", name.name)]


def test_private_names_stay_at_home():
    found = {module: names for module, path in modules().items() if (names := private_guests(path.read_text("utf-8")))}
    assert not found, f"private names that others import: {found}"
    assert private_guests("from dpsql.core.mechanisms.samplers import _words, uniform_below") == ["_words"]


def circles(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The modules that lead back to themselves by what they import, at any distance."""
    left = {module: set(others) & set(imports) for module, others in imports.items()}
    while bottom := [module for module, others in left.items() if not others]:
        left = {module: others - set(bottom) for module, others in left.items() if others}
    while top := left.keys() - set().union(*left.values()):  # on no circle, though it leads to one
        left = {module: others for module, others in left.items() if module not in top}
    return sorted(left)


def test_no_module_leads_back_to_itself():
    found = circles({module: imports_of(module) for module in modules()})
    assert not found, f"modules that import each other, under TYPE_CHECKING or in a function too: {found}"


def test_a_planted_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": ()}) == ["a", "b", "c"]
    assert circles({"a": {"b", "c", "numpy"}, "b": {"c"}, "c": ()}) == []


def test_core_rests_on_little():
    reached = reached_from("core")
    rooms = {place[1] for module in reached if (place := place_of(module)) and module.startswith("dpsql.")}
    assert rooms == CORE_RESTS_ON
    libraries = {module for module in reached if not module.startswith("dpsql")} - set(sys.stdlib_module_names)
    assert libraries == CORE_LIBRARIES


def test_what_runs_over_answers_has_no_way_to_a_row():
    """SQL over answers is run by a room that meets, by all it imports, nothing that reads a row or runs a plan."""
    reached = reached_from("postprocess")
    rooms = {place[1] for module in reached if (place := place_of(module)) and module.startswith("dpsql.")}
    assert rooms == {"postprocess", "plan", "schema", "errors"}
    libraries = {module for module in reached if not module.startswith("dpsql")} - set(sys.stdlib_module_names)
    assert libraries == {"numpy", "duckdb"}


def test_the_house_grows_by_decision_alone():
    entries = [path for path in (ROOT / "dpsql").iterdir() if path.name not in ("__pycache__", ".mypy_cache")]
    code, prose = lines_of("core")
    measured = {
        "folders in the root": sum(path.is_dir() for path in entries),
        "files in the root": sum(path.is_file() for path in entries),
        "lines of code in core": code,
        "lines of docstrings and comments in core": prose,
    }
    over = {name: size for name, size in measured.items() if size > BUDGETS[name]}
    assert not over, f"more than the budgets on record: {over}"
    code_budget = BUDGETS["lines of code in core"]
    assert code > code_budget * 0.97, "core has become smaller: lower its budget, so that it stays so"


@pytest.mark.parametrize(
    ("module", "source", "words"),
    [
        ("dpsql.core.loss", "from dpsql.sql.syntax.parse import parse", "import sql of floor 4"),
        ("dpsql.core.loss", "def f():\n    import dpsql.session", "line 2: stands on floor 3 (core)"),
        ("dpsql.session.session", "from dpsql import Session", "import __init__ of floor 12"),
        ("dpsql.errors", "if TYPE_CHECKING:\n    from dpsql import schema", "import schema of floor 1"),
        ("dpsql.plan.facts", "from dpsql.core.unit import Neighbours", "import core of floor 3"),
        (
            "dpsql.core.sensitivity.stability",
            "from dpsql.executors.base import Executor",
            "import executors of floor 5",
        ),
        ("dpsql.sources.frames", "from dpsql.executors import base", "import executors of floor 5"),
        ("dpsql.postprocess.database", "from dpsql.executors import base", "import executors of floor 5"),
        ("dpsql.postprocess.database", "from dpsql.sources import frames", "import sources of floor 4"),
        ("dpsql.postprocess.database", "from dpsql.core import samplers", "import core of floor 3"),
        ("dpsql.release.release", "from dpsql.executors.pandas.executor import executed", "names an engine"),
        ("dpsql.answer.result", "from dpsql.executors.pandas import columns", "names an engine"),
        ("dpsql.shell.cli", "import dpsql", "import __init__ of floor 12"),
        ("dpsql.sql.bind.statement", "from .parse import parse", "relatively"),
        ("dpsql.sql.bind.statement", "if TYPE_CHECKING:\n    import pandas as pd", "line 2: uses pandas"),
        ("dpsql.release.release", "from pandas import DataFrame", "uses pandas"),
        ("dpsql.schema.columns", "import pandas", "uses pandas"),
        ("dpsql.executors.pandas.executor", "from sqlglot import exp", "uses sqlglot, which is for sql alone"),
        ("dpsql.errors", "import numpy as np", "uses numpy"),
        ("dpsql.executors.sql.compile", "import duckdb", "uses duckdb"),
        ("dpsql.core.mechanisms.samplers", "import random", "uses random, which is for no room alone"),
        ("dpsql.core.mechanisms.samplers", "import numpy as np\nnp.random.default_rng(0)", "line 2: uses numpy.random"),
        ("dpsql.core.mechanisms.samplers", "from numpy import random as r", "uses numpy.random"),
        ("dpsql.core.mechanisms.noise", "import os as o\no.urandom(8)", "line 2: uses os.urandom"),
        ("dpsql.session.session", "from os import urandom", "uses os.urandom"),
        ("dpsql.session.session", "from secrets import token_bytes", "uses secrets"),
        ("dpsql.attic", "", "unknown room"),
        ("dpsql.release_rows", "", "unknown room"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str, words: str):
    assert any(words in each for each in violations(module, source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dpsql.core.mechanisms.samplers", "import os\nos.urandom(8)"),
        ("dpsql.session.session", "import os\nos.getpid()\nimport pandas"),
        (
            "dpsql.sql.bind.statement",
            "import sqlglot\nimport numpy as np\nfrom dpsql.plan.nodes import Scan\nfrom dpsql import schema",
        ),
        ("dpsql.executors.pandas.executor", "import pandas as pd\nfrom dpsql.core.exact import ExactPlan"),
        ("dpsql.release.plan", "import numpy\nfrom dpsql.release.release import Release"),
        ("dpsql.session.query", "from dpsql.session.session import Session"),
        ("dpsql.__main__", "from dpsql.shell.cli import main"),
        ("dpsql", "from dpsql.session.query import query\nimport random_words"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str):
    assert violations(module, source) == []
