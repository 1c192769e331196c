"""The levels of tests: `make test` has a contract of each package and all mutation tests, in its share of CPU time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.test_times import read
from tests.conftest import fail_if_skipped_in_ci
from tests.levels import CONTRACT, has_contract, is_contract, is_mutation_test
from tests.test_architecture import ROOT

MOST_CPU_SECONDS = 480
"""Of five minutes on two cores, 600; the others go to mypy (72) and to the collection of the tests (40)."""
FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def plants_mutations(source: str) -> set[str]:
    """Names of a file's tests that call assert_caught or have a parameter `lie`."""
    return {
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
        if "lie" in {each.arg for each in function.args.args}
        or any(isinstance(each, ast.Name) and each.id == "assert_caught" for each in ast.walk(function))
    }


def test_every_package_has_a_contract() -> None:
    packages = {path.parent.name for path in (ROOT / "dpsql").glob("*/__init__.py")}
    assert packages - CONTRACT.keys() == set()
    assert [package for package, names in CONTRACT.items() if not names] == []


def test_every_file_of_the_table_exists() -> None:
    files = [Path("tests", package, f"{name}.py") for package, names in CONTRACT.items() for name in names]
    assert [str(file) for file in files if not (ROOT / file).is_file()] == []
    assert all(is_contract(f"{file.as_posix()}::test_it") for file in files)


def test_every_mutation_test_is_of_the_contract() -> None:
    left_out = []
    for path in FILES:
        file, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        tests = [f"{file}::{test}" for test in sorted(plants_mutations(source))]
        left_out += [test for test in tests if not is_contract(test) or not has_contract(file, source)]
    assert left_out == [], "name them so that tests/levels.py finds them, or list them there"


def test_a_mutation_test_that_is_left_out_is_seen() -> None:
    source = "def test_a():\n    assert_caught(lie, check)\ndef test_b(lie): pass\ndef test_c(): pass"
    assert plants_mutations(source) == {"test_a", "test_b"}
    assert not is_mutation_test("test_a")


def test_levels_divide_the_tests() -> None:
    assert is_contract("tests/core/test_costs.py::test_a_lie_about_charges_is_caught[no_delta]")
    assert not is_contract("tests/core/test_costs.py::test_a_step[caught]")
    assert not has_contract("tests/core/test_a.py", "def test_a(): pass\n\n\ndef helper_caught(): pass")


def test_make_test_has_time_for_them() -> None:
    seconds = {file: spent for (file, level), (_, spent) in read().items() if level == "contract"}
    whole = {f"tests/{package}/{name}.py".replace("//", "/") for package, names in CONTRACT.items() for name in names}
    unmeasured = whole - seconds.keys() - {"tests/test_levels.py"}
    assert unmeasured == set(), "run benchmarks/test_times.py with these files"
    assert sum(seconds.values()) <= MOST_CPU_SECONDS


@pytest.mark.parametrize(
    ("ci", "reason", "outcome"),
    [
        ("true", "Skipped: there is no Java", "failed"),
        ("true", "Skipped: could not import 'ipykernel'", "failed"),
        ("true", "Skipped: root writes everywhere", "skipped"),
        ("", "Skipped: there is no Java", "skipped"),
    ],
)
def test_skips_fail_in_ci(monkeypatch: pytest.MonkeyPatch, ci: str, reason: str, outcome: str) -> None:
    monkeypatch.setenv("CI", ci)
    report = pytest.CollectReport("tests/test_a.py", "skipped", ("tests/test_a.py", 1, reason), [])
    fail_if_skipped_in_ci(report)
    assert report.outcome == outcome
