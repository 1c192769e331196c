"""Each function of the language in Spark's SQL.

A function is in one of three lists: it has its own text here; or Spark accepts the text of its record, which is
DuckDB's, with the same result; or it is lacking, and a plan with it is refused before it is charged. Tests compare all
of them with the kernels, cell by cell.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.executors.spark.date_functions import DATES
from dpsql.executors.spark.number_functions import NUMBERS, Template
from dpsql.executors.spark.text_functions import TEXTS
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Call

OWN: Mapping[str, Template] = {**NUMBERS, **DATES, **TEXTS}
AS_IN_RECORD = frozenset(
    {
        "add", "subtract", "multiply", "of_steps", "divide", "modulo", "sign",
        "cbrt", "exp", "ln", "log10", "log2", "log_base", "pi", "sin", "cos", "tan",
        "eq", "ne", "lt", "le", "gt", "ge", "not_distinct", "distinct", "in", "is_null",
        "case", "coalesce", "nullif",
        "and", "or", "not", "is_true", "is_false",
        "to_double", "to_boolean",
    }
)  # fmt: skip
LACKING: Mapping[str, str] = {
    "real_to_text": "CAST of a REAL to text (no function of Spark writes the shortest digits)",
}


def template_of(call: Call) -> str:
    """Return the format string of a call. Raises MissingFeature."""
    name = call.function.name
    own = OWN.get(name)
    if own is not None:
        return own if isinstance(own, str) else own(call)
    if name not in AS_IN_RECORD:
        raise MissingFeature(LACKING.get(name, f"{name} in Spark's SQL"))
    text = call.function.sql
    return text if isinstance(text, str) else text([each.type for each in call.args], call.type)
