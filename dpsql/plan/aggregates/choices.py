"""Values selected at random from private rows: by rank (quantiles, and minimum and maximum, which are exact over exact
rows), and by count (the most frequent values)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsql.plan.aggregates.record import NOT_COMPARED, AggregateFunction
from dpsql.schema.columns import Type

_SAME: Mapping[str, Any] = {"result": lambda kind: kind, "without_interval": "its value is chosen"}
_RANKED: Mapping[str, Any] = {**_SAME, "chosen_by": "rank"}
_COUNTED: Mapping[str, Any] = {**_SAME, **NOT_COMPARED, "chosen_by": "count"}


def _end(name: str, tag: str, node: str, **own: Any) -> AggregateFunction:
    return AggregateFunction(
        name, tag, (f"{node}(this)",), **_RANKED,
        accepts=lambda kind: kind.ordered_number, accepts_exact=None,
        refusal="{kind}({expr}): {expr} is {type}.",
        hint="{kind} is of numbers, dates and times. MODE({expr}) gives the most frequent value.",
        **own,
    )  # fmt: skip


AGGREGATES = (
    AggregateFunction(
        "QUANTILE", "quantile",
        (
            "Median(this)", "Quantile(this, quantile)", "ApproxQuantile(this, quantile)",
            "PercentileCont(this, expression) WITHIN GROUP", "PercentileDisc(this, expression) WITHIN GROUP",
        ),
        **_RANKED, half_name="MEDIAN",
        accepts=lambda kind: kind.ordered_number or kind is Type.BOOLEAN,
        refusal="a quantile of {expr}: it is {type}.",
        hint="Quantiles are of numbers, dates and times. MODE({expr}) gives the most frequent value.",
    ),
    _end("MIN", "least", "Min", end="least", of_cells=lambda cells, _kind: min(cells)),
    _end("MAX", "largest", "Max", end="largest", of_cells=lambda cells, _kind: max(cells)),
    AggregateFunction("MODE", "mode", ("Mode(this) WITHIN GROUP",), **_COUNTED),
    AggregateFunction(
        "APPROX_TOP_K", "most frequent", ("ApproxTopK(this, expression)",),
        **{**_COUNTED, "result": lambda _kind: Type.TEXT}, several=True,
    ),
)  # fmt: skip
