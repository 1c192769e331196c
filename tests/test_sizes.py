"""What a reader takes in at once: how long functions and files are, how often a function branches, and what may be
larger, each for a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_LINES_OF_A_FUNCTION = 45
MOST_BRANCHES = 15
MOST_LINES_OF_A_FILE = 300

LARGER: dict[str, str] = {  # what is above a limit, and why: a file, or a function as file::name
    "answer/result.py": "one class, the public answer: its notes and marks are made in files of their own",
    "postprocess/work_limits.py::_Work.made": "one branch for each kind of function whose size differs",
    "sql/syntax/parser.py": "one class that extends the parser, hook by hook",
    "sql/boundary/released_parts.py::EarlierParts._found": "one branch for each place of an answer in a private SELECT",
    "sql/rewrite/foreign_functions.py": "a table of functions, with their builders",
    "sql/bind/joins.py": "the refusals of joins stand beside the rules that raise them",
    "sql/boundary/statements.py": "one class that takes a statement apart, clause by clause",
    "sql/bind/subqueries.py::Membership._marked": "one mark with its sides, conditions and facts, in order",
}

_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.match_case,
    ast.IfExp,
    ast.comprehension,
    ast.Assert,
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def branches_of(function: Function) -> int:
    """Places where what happens next is decided: a loop, a case, a comprehension, an assertion, a further operand of
    `and` and `or`; in the functions inside it too."""
    count = 0
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def lines_of_texts(tree: ast.AST) -> int:
    """Lines of docstrings, those of attributes too: proofs stay."""
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return sum((text.end_lineno or text.lineno) - text.lineno + 1 for text in texts)


def lines_of(function: Function) -> int:
    """Lines from the signature to the end, without its docstrings and decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1 - lines_of_texts(function)


def functions_of(tree: ast.AST, name: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its full name, in the order of the text."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}.{node.name}".lstrip(".") if isinstance(node, Function | ast.ClassDef) else name
        if isinstance(node, Function):
            yield inner, node
        yield from functions_of(node, inner)


def too_large(path: str, source: str) -> dict[str, str]:
    """What stands above a limit in a file's text, and how far."""
    tree = ast.parse(source)
    over = {}
    lines = len(source.splitlines()) - lines_of_texts(tree)
    if lines > MOST_LINES_OF_A_FILE:
        over[path] = f"{lines} lines, of at most {MOST_LINES_OF_A_FILE}"
    for name, function in functions_of(tree):
        if (lines := lines_of(function)) > MOST_LINES_OF_A_FUNCTION:
            over[f"{path}::{name}"] = f"{lines} lines, of at most {MOST_LINES_OF_A_FUNCTION}"
        if (branches := branches_of(function)) > MOST_BRANCHES:
            over[f"{path}::{name}"] = f"{branches} branches, of at most {MOST_BRANCHES}"
    return over


def all_too_large() -> dict[str, str]:
    over: dict[str, str] = {}
    for path in sorted((ROOT / "dpsql").rglob("*.py")):
        over |= too_large(path.relative_to(ROOT / "dpsql").as_posix(), path.read_text(encoding="utf-8"))
    return over


def unexplained(over: dict[str, str], reasons: dict[str, str]) -> list[str]:
    return [f"{what}: {how_far}" for what, how_far in over.items() if len(reasons.get(what, "").split()) < 3]


def mended(over: dict[str, str], reasons: dict[str, str]) -> list[str]:
    return sorted(reasons.keys() - over.keys())


def test_functions_and_files_are_read_at_once():
    over = unexplained(all_too_large(), LARGER)
    assert not over, "\n".join(["split along an idea, or put a reason into LARGER:", *over])


def test_every_reason_is_needed():
    idle = mended(all_too_large(), LARGER)
    assert not idle, "\n".join(["no longer above a limit, so take it out of LARGER:", *idle])


def test_a_reason_is_some_words_about_something_large():
    over = {"a.py": "301 lines, of at most 300"}
    assert unexplained(over, {}) == unexplained(over, {"a.py": "later"}) == ["a.py: 301 lines, of at most 300"]
    assert unexplained(over, {"a.py": "a table of names, read by eye"}) == []
    assert mended({}, {"a.py": "a table of names, read by eye"}) == ["a.py"]


LONG = "def f(x):\n" + "    x += 1\n" * MOST_LINES_OF_A_FUNCTION
IFS = "def f(x):\n" + "    if x: pass\n" * MOST_BRANCHES


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (LONG, "file.py::f"),
        (f"class A:\n    async def f(x):\n{LONG.split(chr(10), 1)[1].replace('    ', '        ')}", "file.py::A.f"),
        ("def f(x):\n    def g(y):\n" + "        y += 1\n" * MOST_LINES_OF_A_FUNCTION, "file.py::f.g"),
        (f"{IFS}    return x and x", "file.py::f"),
        (f"{IFS}    return 1 if x else 2", "file.py::f"),
        (f"{IFS}    return [y for y in x]", "file.py::f"),
        (f"{IFS}    assert x", "file.py::f"),
        (f"{IFS}    while x: pass", "file.py::f"),
        (f"{IFS}    for y in x: pass", "file.py::f"),
        (f"{IFS}    try: pass\n    except ValueError: pass", "file.py::f"),
        (f"{IFS}    match x:\n        case 1: pass", "file.py::f"),
        (f"{IFS}    return lambda y: y or x", "file.py::f"),
        (f"def f(x): return {' or '.join(['x'] * (MOST_BRANCHES + 2))}", "file.py::f"),
        ("def f(x):\n    def g(y):\n" + "        if y: pass\n" * MOST_BRANCHES + "    return x or g", "file.py::f"),
        ("x = 1\n" * (MOST_LINES_OF_A_FILE + 1), "file.py"),
        ('"""One line."""\n' + "\n" * (MOST_LINES_OF_A_FILE + 1), "file.py"),
    ],
)
def test_a_planted_giant_is_found(source: str, what: str):
    assert what in too_large("file.py", source)


@pytest.mark.parametrize(
    "source",
    [
        LONG.rsplit("    x", 1)[0],
        IFS,
        LONG.replace("    x += 1\n", '    """A text\n\n    of lines."""\n', 1),
        "@cache\n" + LONG.rsplit("    x", 1)[0],
        f"{IFS}\n\ndef g(x):\n    return x and x",
        "x = 1\n" * MOST_LINES_OF_A_FILE + '"""A proof\nof lines."""\n',
    ],
)
def test_what_is_within_the_limits_is_not(source: str):
    assert too_large("file.py", source) == {}
