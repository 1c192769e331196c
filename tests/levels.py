"""The test files that `make test` runs: the contract of each package of dpsql, and all mutation tests.

`make test` runs `pytest --level contract`, `make test-all` also runs `pytest --level rest`: all other tests by default
and those on Spark. tests/test_levels.py checks this table against the packages, the mutation tests and tests/times.csv.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LEVELS = ("contract", "rest")
CONTRACT: Mapping[str, tuple[str, ...]] = {
    "": (
        "test_architecture",
        "test_levels",
        "test_planted_lies",
        "test_public_names",
        "test_tested_releases",
        "test_testing",
        "test_testing_lies",
    ),
    "accounting": ("test_accounting_of_sessions", "test_losses"),
    "accuracy": ("test_many_dimensions",),
    "answer": ("test_explain", "test_html", "test_notes_on_groups", "test_result", "test_travelling", "test_tree"),
    "core": (
        "ledger/test_budget",
        "ledger/test_charging",
        "ledger/test_formats",
        "ledger/test_lies",
        "test_exact_units_lies",
        "test_measurement",
        "test_mechanisms",
        "test_samplers",
        "test_selection",
        "test_traces",
    ),
    "executors": ("pandas/test_bounding", "test_windows"),
    "owner": (
        "test_access",
        "test_cell_checks",
        "test_costs",
        "test_data_checks",
        "test_mistakes",
        "test_suggestion",
        "test_todos",
    ),
    "plan": ("test_never_fails",),
    "postprocess": ("test_machine", "test_statements", "test_watch"),
    "release": ("test_given_lies", "test_planning", "test_whole_numbers"),
    "remote": ("test_jobs", "test_turns"),
    "schema": ("test_argument_names", "test_auto_within", "test_declared_types", "test_declared_units", "test_frozen"),
    "session": ("test_advice", "test_canonical_names", "test_described", "test_remedies", "test_session"),
    "shell": ("test_cli", "test_modes", "test_statements"),
    "sources": ("test_frames",),
    "sql": (
        "golden/test_golden",
        "test_dialect",
        "test_incomplete",
        "test_options",
        "test_oracle",
        "test_oracle_reference",
        "test_pivots",
        "test_refusals",
        "test_syntax_words",
    ),
}
"""By package, files of its folder in tests/; under the empty name those of the package as a whole, in tests/ itself.

Tables and sweeps over many literals are left to `make test-all`."""

_MUTATION_NAME = re.compile(r"caught|lies_are_seen|tell_lies|a_broken_rule_is_seen")
_MUTATION_TESTS = frozenset(
    {
        "test_a_reach_that_is_stated_is_derived_anew",
        "test_a_search_without_its_limits_is_refused",
        "test_a_unit_that_is_taken_for_one_below_is_seen",
        "test_choices_are_for_all_rows_of_a_person",
        "test_noise_that_is_too_small_is_refused",
        "test_the_harness_sees_a_wrong_kernel",
        "test_the_part_for_conversion_counts",
        "test_what_a_person_moves_is_not_released_as_it_is",
    }
)
_FILES = frozenset(
    f"tests/{package}/{name}.py" if package else f"tests/{name}.py"
    for package, names in CONTRACT.items()
    for name in names
)
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
