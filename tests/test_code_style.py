"""Style of the code: how much a reader takes in at once, and names of locals. No privacy property rests on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_architecture import ROOT, modules

MOST_LINES_OF_A_FUNCTION = 45
MOST_BRANCHES = 15
MOST_LINES_OF_A_FILE = 300

LARGER: dict[str, str] = {  # what is above a limit, and why: a file, or a function as file::name
    "postprocess/work_limits.py::_Work.made": "one branch for each kind of function whose size differs",
    "sql/boundary/released_parts.py::PriorParts._found": "one branch for each place of an answer in a private SELECT",
    "sql/rewrite/foreign_functions.py": "a table of functions, with their builders",
    "sql/bind/subqueries.py::Membership._marked": "one mark with its sides, conditions and facts, in order",
}
_BRANCHES = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler),
    *(ast.match_case, ast.IfExp, ast.comprehension, ast.Assert),
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
VERBS = frozenset({"found", "made", "held", "said"})
"""No names for locals that are used over more than `MOST_LINES_OF_A_VERB` lines."""
MOST_LINES_OF_A_VERB = 3


def branches_of(function: Function) -> int:
    """The decisions of a function and those inside it: conditions, loops, cases, comprehensions, assertions, and each
    further operand of `and` and `or`."""
    operands = (len(node.values) - 1 for node in ast.walk(function) if isinstance(node, ast.BoolOp))
    return sum(isinstance(node, _BRANCHES) for node in ast.walk(function)) + sum(operands)


def lines_of(node: ast.AST) -> int:
    """The lines of a statement or expression."""
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined, no-any-return]


def lines_of_texts(tree: ast.AST) -> int:
    """The lines of docstrings, those of attributes too: proofs stay."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    return sum(lines_of(node) for node in nodes if isinstance(node.value.value, str))


def functions_of(tree: ast.AST, name: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its full name, in the order of the text."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}.{node.name}".lstrip(".") if isinstance(node, Function | ast.ClassDef) else name
        if isinstance(node, Function):
            yield inner, node
        yield from functions_of(node, inner)


def too_large(path: str, source: str) -> dict[str, str]:
    """The parts of a file above a limit, and how far. Docstrings, decorators and a file's imports do not count."""
    tree = ast.parse(source)
    imports = sum(lines_of(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    sizes = [(path, len(source.splitlines()) - lines_of_texts(tree) - imports, MOST_LINES_OF_A_FILE, "lines")]
    for name, function in functions_of(tree):
        lines = lines_of(function) - lines_of_texts(function)
        sizes.append((f"{path}::{name}", lines, MOST_LINES_OF_A_FUNCTION, "lines"))
        sizes.append((f"{path}::{name}", branches_of(function), MOST_BRANCHES, "branches"))
    return {what: f"{size} {unit}, of at most {most}" for what, size, most, unit in sizes if size > most}


def all_too_large() -> dict[str, str]:
    over: dict[str, str] = {}
    for path in sorted((ROOT / "dpsql").rglob("*.py")):
        over |= too_large(path.relative_to(ROOT / "dpsql").as_posix(), path.read_text(encoding="utf-8"))
    return over


def unexplained(over: dict[str, str], reasons: dict[str, str]) -> list[str]:
    return [f"{what}: {how_far}" for what, how_far in over.items() if len(reasons.get(what, "").split()) < 3]


def long_lived(source: str) -> list[str]:
    """The functions in which a verb names a local for long."""
    named = []
    for _, function in functions_of(ast.parse(source)):
        if isinstance(function, ast.AsyncFunctionDef):
            continue
        names = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id in VERBS]
        for verb in sorted({each.id for each in names if isinstance(each.ctx, ast.Store)}):
            lines = [each.lineno for each in names if each.id == verb]
            if max(lines) - min(lines) > MOST_LINES_OF_A_VERB:
                named.append(f"{function.name}: {verb}")
    return named


def test_functions_and_files_are_read_at_once():
    over = all_too_large()
    assert not unexplained(over, LARGER), "split along an idea, or put a reason into LARGER"
    assert not LARGER.keys() - over.keys(), "no longer above a limit, so take it out of LARGER"


def test_a_reason_is_some_words_about_something_large():
    over = {"a.py": "301 lines, of at most 300"}
    assert unexplained(over, {}) == unexplained(over, {"a.py": "later"}) == ["a.py: 301 lines, of at most 300"]
    assert unexplained(over, {"a.py": "a table of names, read by eye"}) == []


def test_locals_that_live_longer_have_nouns_for_names():
    named = {str(path.relative_to(ROOT)): long_lived(path.read_text(encoding="utf-8")) for path in modules().values()}
    assert not {path: names for path, names in named.items() if names}


def test_a_local_that_lives_longer_is_seen():
    assert long_lived("def f():\n    found = []\n    a = 1\n    b = 2\n    c = 3\n    return found\n") == ["f: found"]
    assert not long_lived("def f():\n    found = []\n    return found\n")


LONG = "def f(x):\n" + "    x += 1\n" * MOST_LINES_OF_A_FUNCTION
IFS = "def f(x):\n" + "    if x: pass\n" * MOST_BRANCHES
ONE_MORE = (
    "return x and x", "return 1 if x else 2", "return [y for y in x]", "assert x", "while x: pass", "for y in x: pass",
    "try: pass\n    except ValueError: pass", "match x:\n        case 1: pass", "return lambda y: y or x",
)  # fmt: skip
PLANTED = (
    (LONG, "file.py::f"),
    (f"class A:\n    async def f(x):\n{LONG.partition(chr(10))[2].replace('    ', '        ')}", "file.py::A.f"),
    ("def f(x):\n    def g(y):\n" + "        y += 1\n" * MOST_LINES_OF_A_FUNCTION, "file.py::f.g"),
    *((f"{IFS}    {statement}", "file.py::f") for statement in ONE_MORE),
    (f"def f(x): return {' or '.join(['x'] * (MOST_BRANCHES + 2))}", "file.py::f"),
    ("def f(x):\n    def g(y):\n" + "        if y: pass\n" * MOST_BRANCHES + "    return x or g", "file.py::f"),
    ("x = 1\n" * (MOST_LINES_OF_A_FILE + 1), "file.py"),
)
WITHIN = (
    LONG.rsplit("    x", 1)[0],
    IFS,
    LONG.replace("    x += 1\n", '    """A text\n\n    of lines."""\n', 1),
    "@cache\n" + LONG.rsplit("    x", 1)[0],
    f"{IFS}\n\ndef g(x):\n    return x and x",
    "x = 1\n" * MOST_LINES_OF_A_FILE + '"""A proof\nof lines."""\n',
)


@pytest.mark.parametrize(("source", "what"), PLANTED)
def test_a_planted_giant_is_found(source: str, what: str):
    assert what in too_large("file.py", source)


@pytest.mark.parametrize("source", WITHIN)
def test_code_within_the_limits_is_not_reported(source: str):
    assert too_large("file.py", source) == {}
