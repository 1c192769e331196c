"""The texts that dpsql shows to people, read from its source: for the page of messages."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "dpsql"
SHOWN = {
    "Notes, footers and explanations": ("answer", "release/output"),
    "Command line, prompt and notebook": ("shell",),
    "Owners' tools": ("owner",),
    "Server, its pages and its client": ("remote",),
}
"""Headings, and the folders of `dpsql` whose sentences stand below them."""
_LEAST_WORDS = 3
_WORD = re.compile(r"(?<![\w{$/.=-])[a-z]{2,}(?![\w}(=/-])")
_CODE = re.compile(r"^\s*(?:[<.#{]|(?:SELECT|WITH|FROM|ATTACH|CREATE|PRAGMA)\b)|[;{]\s*$|style=|class=|\{\s*[a-z-]+:")
"""Texts that are HTML, CSS or SQL."""


def text_of(node: ast.expr | None) -> str:
    """A string as the source writes it, with `{names}` for what is filled in; "" for what holds no words."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{_name(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(body=body, orelse=other):
            either = [text for text in (text_of(body), text_of(other)) if text]
            return " / ".join(either)
        case ast.Name() | ast.Attribute() | ast.Call():
            return f"{{{_name(node)}}}"
    return ""


def _name(value: ast.expr) -> str:
    names = [each.attr if isinstance(each, ast.Attribute) else each.id for each in ast.walk(value) if _is_name(each)]
    return names[0].strip("_") if names else "…"


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def error_names() -> frozenset[str]:
    """The names of the error classes."""
    tree = ast.parse((PACKAGE / "errors.py").read_text(encoding="utf-8"))
    bases = {node.name: [_name(base) for base in node.bases] for node in tree.body if isinstance(node, ast.ClassDef)}
    return frozenset(name for name, of in bases.items() if name == "DPSQLError" or set(of) & set(bases))


def errors() -> dict[str, list[tuple[str, str]]]:
    """The messages of each error class, each with its advice, in the order of the source."""
    known, found = error_names(), defaultdict[str, list[tuple[str, str]]](list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known and node.args:
                hint = next((each.value for each in node.keywords if each.arg == "hint"), None)
                row = (text_of(node.args[0]), text_of(hint))
                if row not in found[node.func.id]:
                    found[node.func.id].append(row)
    return {name: rows for name, rows in sorted(found.items()) if rows}


def sentences(folders: tuple[str, ...]) -> list[str]:
    """The sentences of some folders that are neither docstrings nor messages of errors."""
    known, found = error_names(), dict[str, None]()
    for folder in folders:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            for node in _outside_errors(ast.parse(file.read_text(encoding="utf-8")), known):
                text = " ".join(text_of(node).split())
                if len(_WORD.findall(text)) >= _LEAST_WORDS and not _CODE.search(text):
                    found[text] = None
    return list(found)


def _outside_errors(tree: ast.AST, known: frozenset[str]) -> Iterator[ast.expr]:
    """The strings of a tree, each as a whole, without docstrings and without arguments of errors."""
    for node in ast.iter_child_nodes(tree):
        is_error = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known
        if is_error or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node
        else:
            yield from _outside_errors(node, known)


def page() -> str:
    """The page's tables and lists."""
    parts = ["## Errors"]
    for name, rows in errors().items():
        parts += [f"### {name}", "\n".join(["| Message | Advice |", "|---|---|", *map(_row, rows)])]
    for heading, folders in SHOWN.items():
        parts += [f"## {heading}", "\n".join(f"- {_cell(text)}" for text in sentences(folders))]
    return "\n\n".join(parts)


def _row(texts: tuple[str, str]) -> str:
    return f"| {_cell(texts[0])} | {_cell(texts[1])} |"


def _cell(text: str) -> str:
    escaped = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"([<>*_`])", r"\\\1", escaped)
