"""The test files that `make test` runs: the contract of each package of dpsql, and all mutation tests.

`make test` runs `pytest --level contract`, `make test-all` also runs `pytest --level rest`: all other tests by default
and those on Spark. tests/test_levels.py checks this table against the packages, the mutation tests and tests/times.csv.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LEVELS = ("contract", "rest")
CONTRACT: Mapping[str, tuple[str, ...]] = {
    "": (  # the package as a whole
        "test_architecture.py",
        "test_kinds.py",
        "test_levels.py",
        "test_planted_lies.py",
        "test_public_names.py",
        "test_testing.py",
        "test_testing_lies.py",
    ),
    "accounting": ("accounting/test_accounting_of_sessions.py", "accounting/test_losses.py"),
    "accuracy": ("accuracy/test_many_dimensions.py",),
    "answer": ("answer/test_result.py", "answer/test_tree.py"),
    "core": (
        "core/ledger/test_budget.py",
        "core/ledger/test_charging.py",
        "core/ledger/test_formats.py",
        "core/test_costs.py",
        "core/test_measurement.py",
        "core/test_paid.py",
    ),
    "executors": ("executors/pandas/test_executor.py", "executors/test_windows.py"),
    "owner": ("owner/test_access.py", "owner/test_cell_checks.py"),
    "plan": ("plan/test_never_fails.py", "plan/test_ranges.py"),
    "postprocess": ("postprocess/test_statements.py",),
    "release": ("release/test_planning.py", "release/test_whole_numbers.py"),
    "remote": ("remote/test_turns.py", "remote/test_jobs.py"),
    "schema": ("schema/test_declared_types.py", "schema/test_frozen.py"),
    "session": ("session/test_session.py",),
    "shell": ("shell/test_statements.py", "shell/test_modes.py"),
    "sources": ("sources/test_frames.py",),
    "sql": ("sql/golden/test_golden.py", "sql/test_dialect.py", "sql/test_words.py"),
}
"""By package, files below tests/. Tables and sweeps over many literals are left to `make test-all`."""

_MUTATION_NAME = re.compile(r"caught|lies_are_seen|tell_lies")
_MUTATION_TESTS = frozenset(
    {
        "test_each_check_passes_on_the_honest_engine",
        "test_noise_that_is_too_small_is_refused",
        "test_the_harness_sees_a_wrong_kernel",
        "test_the_honest_ledger_passes",
        "test_the_part_for_conversion_counts",
    }
)
_FILES = frozenset(f"tests/{file}" for files in CONTRACT.values() for file in files)
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def is_mutation_test(function: str) -> bool:
    """Whether a test, by its name, plants a mutation and sees that a check fails. `make test` runs it in any file."""
    return function in _MUTATION_TESTS or _MUTATION_NAME.search(function) is not None


def is_contract(node_id: str) -> bool:
    """Whether `make test` runs a test, given its node id as pytest writes it."""
    file, _, test = node_id.partition("::")
    return file in _FILES or is_mutation_test(test.partition("[")[0])


def has_contract(file: str, text: str) -> bool:
    """Whether `make test` runs any test of a file, given its text: files without one are not even imported."""
    return file in _FILES or any(is_mutation_test(name) for name in _TEST.findall(text))
