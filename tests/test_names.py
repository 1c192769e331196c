"""Locals that live longer than a few lines have nouns for names: what was found, made, held or said is no name."""

from __future__ import annotations

import ast

from tests.test_architecture import ROOT, modules

VERBS = frozenset({"found", "made", "held", "said"})
MOST_LINES = 3


def long_lived(source: str) -> list[str]:
    """Functions in which such a local is used over more than so many lines."""
    named = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id in VERBS]
        for verb in sorted({each.id for each in names if isinstance(each.ctx, ast.Store)}):
            lines = [each.lineno for each in names if each.id == verb]
            if max(lines) - min(lines) > MOST_LINES:
                named.append(f"{function.name}: {verb}")
    return named


def test_locals_that_live_longer_have_nouns_for_names() -> None:
    named = {str(path.relative_to(ROOT)): long_lived(path.read_text(encoding="utf-8")) for path in modules().values()}
    assert not {path: names for path, names in named.items() if names}


def test_a_local_that_lives_longer_is_seen() -> None:
    assert long_lived("def f():\n    found = []\n    a = 1\n    b = 2\n    c = 3\n    return found\n") == ["f: found"]
    assert not long_lived("def f():\n    found = []\n    return found\n")
