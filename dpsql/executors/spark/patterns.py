"""LIKE and ILIKE as Java regular expressions without backtracking.

Each piece between two % is searched from left to right and, once found, is kept (an atomic group): so time grows at
most as the length of the text times that of the pattern, as in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.executors.spark.literals import braced, quoted
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Call, Literal
from dpsql.plan.functions.letters import lower
from dpsql.plan.functions.patterns import cut, fits_as_escape, lower_escape


def like(call: Call, text: str = "{0}") -> str:
    """Return the test of LIKE, or of ILIKE over a lowered text. Raises MissingFeature for a pattern that is not
    constant."""
    if not all(isinstance(each, Literal) for each in call.args[1:]):
        raise MissingFeature("LIKE with a pattern that is no constant")
    values = [each.value for each in call.args[1:] if isinstance(each, Literal)]
    if None in values:
        return "CAST(NULL AS BOOLEAN)"
    pattern, escape = str(values[0]), str(values[1]) if len(values) > 1 else ""
    if call.function.name == "ilike":
        pattern, escape = lower(pattern), lower_escape(escape)
    pieces = cut(pattern, escape) if fits_as_escape(escape) else None
    if pieces is None:
        return "CAST(NULL AS BOOLEAN)"
    return f"{text} RLIKE {braced(quoted(_regular(pieces)))}"


def no_regular_expression(_call: Call) -> str:
    """Reject regular expressions: Spark's backtrack, without a time limit. Raises MissingFeature."""
    raise MissingFeature("regular expressions")


def _regular(pieces: Sequence[Sequence[str | None]]) -> str:
    written = ["".join("." if sign is None else f"\\x{{{ord(sign):X}}}" for sign in piece) for piece in pieces]
    first, *rest = written
    if not rest:
        return f"(?s)\\A{first}\\z"
    middles = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return f"(?s)\\A{first}{middles}.*{rest[-1]}\\z"
