"""The public attributes of classes that users meet. A new one is a decision: it is promised from then on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import dpsql
from dpsql.answer.computed_result import StagedResult
from dpsql.answer.multi_step import MultiStepExplanation, MultiStepResult
from dpsql.remote.answers import RemoteResult

RESULT = [
    "answers",
    "bounds",
    "df",
    "explanation",
    "footer",
    "intervals",
    "item",
    "loss",
    "notes",
    "plot",
    "replayed",
    "warnings",
    "to_arrow",
    "to_csv",
    "to_excel",
    "to_html",
    "to_json",
    "to_latex",
    "to_markdown",
    "to_pandas",
    "to_parquet",
    "to_polars",
    "to_text",
]
EXPLANATION = ["left", "plan", "to_dict"]
SESSION = [
    "accountant",
    "add",
    "budget",
    "catalog",
    "close",
    "explain",
    "export_ledger",
    "ledger",
    "ledger_anchor",
    "ledger_path",
    "neighbours",
    "notes",
    "query",
    "quote",
    "quotes",
    "remaining",
    "remaining_queries",
    "spent",
    "tables",
]


def public_attributes(kind: type) -> set[str]:
    """Names of methods, properties and fields, inherited ones too."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return {name for name in {*dir(kind), *fields} if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "listed"),
    [
        (dpsql.Result, RESULT),
        (StagedResult, RESULT),
        (MultiStepResult, RESULT),
        (dpsql.Explanation, EXPLANATION),
        (MultiStepExplanation, EXPLANATION),
        (dpsql.Session, SESSION),
        (dpsql.PrivacyLoss, ["delta", "epsilon", "within"]),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_attributes_are_listed(kind: type, listed: list[str]) -> None:
    assert public_attributes(kind) == set(listed)


def test_remote_results_have_what_results_have() -> None:
    answer = RemoteResult.__new__(RemoteResult)
    said: dict[str, Any] = {"columns": [], "footer": "", "heading": "", "warnings": [], "replayed": False}
    answer.__init__(said, lambda: None)  # type: ignore[misc, arg-type, return-value]
    held = {name for name in {*dir(RemoteResult), *vars(answer)} if not name.startswith("_")}
    assert held == set(RESULT)
    own = {name for name in vars(dpsql.Result) if name.startswith("__") and name not in vars(object)}
    assert {name for name in own if callable(getattr(dpsql.Result, name))} <= set(dir(RemoteResult))
