"""No room asks which kind a measurement is: each says of itself what there is to say (`core.measurement.Said`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.core.measurement import MeasurementDescription, MeasurementNotes, ShownGroups
from dpsql.release.release import Release

ROOT = Path(__file__).parent.parent / "dpsql"
OF_RELEASES = ("selection", "searches", "sections", "measurements")


def kinds_of(kind: type) -> set[str]:
    return {each.__name__ for each in kind.__subclasses__()}.union(*(kinds_of(each) for each in kind.__subclasses__()))


KINDS = kinds_of(MeasurementNotes)
ASPECTS = {*MeasurementDescription._fields, *OF_RELEASES, "conditions", "threshold", "height"}


def mentioned(node: ast.AST | None) -> set[str]:
    """The measurements that an expression names, in strings too."""
    found = set()
    for each in () if node is None else ast.walk(node):
        word = getattr(each, "id", None) or getattr(each, "attr", None)
        found |= {word} if isinstance(word, str) else set()
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.add(each.value)
    return found & KINDS


def asks(node: ast.AST) -> bool:
    """Whether a piece of code asks which kind a measurement is, or whether it has what others have not."""
    if isinstance(node, ast.Call):  # a kind that is made is no question, one that is handed over is
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "hasattr":
            return isinstance(node.args[1], ast.Constant) and node.args[1].value in ASPECTS
        return any(
            isinstance(each, ast.Name | ast.Attribute | ast.BinOp | ast.Tuple) and mentioned(each) for each in node.args
        )
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        none = any(isinstance(each, ast.Constant) and each.value is None for each in sides)
        aspect = any(isinstance(each, ast.Attribute) and each.attr in ASPECTS for each in sides)
        return (none and aspect) or any(isinstance(each, ast.Name) and each.id in KINDS for each in sides)
    if isinstance(node, ast.MatchClass):
        return bool(mentioned(node.cls))
    if isinstance(node, ast.FunctionDef):  # by the type of what it is handed
        registered = any("register" in ast.unparse(each) for each in node.decorator_list)
        return registered and any(mentioned(each.annotation) for each in node.args.args)
    return False


def questions(source: str) -> Iterator[int]:
    """The lines of a text that ask."""
    return (node.lineno for node in ast.walk(ast.parse(source)) if asks(node))  # type: ignore[attr-defined]


def test_the_kinds_are_known():
    assert {"Share", "GroupsByThreshold", "GroupsByChance", "ShownGroups", "Draw", "Levels", "Searches"} <= KINDS
    assert {"shares", "levels", "draws", "searches", "selections", "plans"} <= ASPECTS
    assert all(hasattr(Release, each) for each in OF_RELEASES if each != "measurements")
    assert hasattr(ShownGroups, "conditions")


def test_nobody_asks_for_the_kind_of_a_measurement():
    found = [
        f"{path.relative_to(ROOT)}, line {line}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] != "core"
        for line in questions(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"let the measurement say it (dpsql/core/measurement.py, Said): {found}"


def test_only_a_trial_runs_by_other_laws():
    """What a release without noise makes of people's rows would be their exact values."""
    using = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "with_laws"
    }
    assert using == {"release/dry_run.py"}


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(each, Share)",
        "isinstance(each, Draw | Levels)",
        "isinstance(each, (int, measurement.GroupsByChance))",
        "issubclass(kind, ShownGroups)",
        "type(each) is Searches",
        "release.of(GroupsByThreshold)",
        "if release.levels is not None: pass",
        "height = None if release.selection.threshold is None else 1",
        "release.searches == None",
        "hasattr(each, 'draws')",
        "match each:\n    case Draw(): pass",
        "@quiet.register\ndef _(share: Share, lifted: object) -> object: ...",
        "@quiet.register\ndef _(levels: 'Levels') -> object: ...",
        "quiet.register(Levels)",
    ],
)
def test_a_planted_question_is_found(source: str):
    assert list(questions(source))


@pytest.mark.parametrize(
    "source",
    [
        "Share(reach, noise, places, epsilon, event)",
        "measurements = (*shares, Levels((), (), (), ()))",
        "def draw(self, law: Draw) -> Share: ...",
        "if release.provisional: pass",
        "len(release.sections) == 1",
        "isinstance(each, Slot)",
        "if estimate.chosen is not None: pass",
    ],
)
def test_what_is_no_question_is_not_reported(source: str):
    assert not list(questions(source))
