"""The description of the server, held against what it says to requests that are made of it, right ones and wrong
ones: no 500, and nothing that it does not describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dpsql.remote.server.app import OPERATIONS
from tests.remote.serving import COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
KNOWN: tuple[dict[str, Any] | None, ...] = (
    None,
    {},
    {"sql": COUNT, "epsilon": 0.01},
    {"sql": COUNT, "epsilon": 11.0},
)
"""What a made-up query is put in place of: nothing; its text by one that is none; all of it by one that is answered, or
costs more than there is."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    schema = shop(tmp_path_factory.mktemp("shop"), rows=50)
    token = token_for(schema, "ann")
    with serving(schema) as server:
        yield server, token


def check_described(server: Server, token: str, examples: int) -> set[tuple[str, int]]:
    """Requests to every operation; what was answered where."""
    described = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    seen: set[tuple[str, int]] = set()
    for found in described.get_all_operations():
        operation = found.ok()
        seen |= check_operation(operation, server, token, examples)
    return seen


def check_operation(operation: Any, server: Server, token: str, examples: int) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    modes = [GenerationMode.POSITIVE]
    if operation.body or operation.query or operation.path_parameters:
        modes.append(GenerationMode.NEGATIVE)
    cases = st.one_of([operation.as_strategy(generation_mode=each) for each in modes])

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=cases, known=st.sampled_from(KNOWN))
    def ask(case: Any, known: dict[str, Any] | None) -> None:
        if known is not None and isinstance(case.body, dict) and "sql" in case.body:
            case.body = known or {**case.body, "sql": COUNT}
        response = case.call(base_url=server.address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        case.validate_response(response, checks=CHECKS)
        seen.add((operation.label, response.status_code))

    ask()
    return seen


def test_nothing_is_answered_that_is_not_described(served: tuple[Server, str]):
    seen = check_described(*served, examples=4)
    assert {label for label, _ in seen} >= {f"{each.method} {each.path}" for each in OPERATIONS}
    assert {200, 400} <= {status for _, status in seen}


@pytest.mark.slow
def test_nothing_of_many_requests_is_answered_that_is_not_described(served: tuple[Server, str]):
    seen = check_described(*served, examples=300)
    assert {200, 400, 422} <= {status for _, status in seen}
