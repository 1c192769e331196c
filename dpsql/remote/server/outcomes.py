"""Replies for errors. Messages that depend only on what the analyst wrote are passed on. Other errors may contain
anything, so only their class is."""

from __future__ import annotations

from dpsql.errors import (
    BudgetExceeded,
    DPSQLError,
    InternalError,
    InvalidArgument,
    InvalidPrivacyParameter,
    PostprocessFailed,
    QueryRefused,
    UnsupportedSQL,
)
from dpsql.remote.server import encoding
from dpsql.remote.server.messages import FAILED, FINAL, REFUSED, UNAVAILABLE, Reply


def outcome_of(error: Exception) -> Reply:
    """Return the reply to a message that raised an error."""
    if isinstance(error, PostprocessFailed):
        answers = encoding.answers_in_json(error.answers)
        return {"outcome": FINAL, "body": {**encoding.error_in_json(error, 422, charged=True), "answers": answers}}
    if isinstance(error, BudgetExceeded):
        return {"outcome": REFUSED, "body": encoding.error_in_json(error, 422)}
    if isinstance(error, QueryRefused | InvalidPrivacyParameter | InvalidArgument):
        return {"outcome": REFUSED, "body": encoding.error_in_json(error, 400)}
    unavailable = isinstance(error, DPSQLError) and not isinstance(error, InternalError)
    return {"outcome": UNAVAILABLE if unavailable else FAILED, "class": type(error).__name__}


def planning_too_long(seconds: float) -> dict[str, object]:
    """Return the body of the refusal of a query that takes too long to plan; nothing was charged."""
    return encoding.error_in_json(
        UnsupportedSQL(
            f"planning this query takes more than {seconds:g} seconds. Nothing was charged.",
            hint="Write fewer terms in WHERE, IN and CASE, fewer columns or fewer sub-queries; if the query is short,\n"
            "the server is busy: ask again later.",
        ),
        400,
    )
