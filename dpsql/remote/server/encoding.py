"""JSON encoding of answers, explanations, costs and errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from dpsql.answer.explain import Explanation
from dpsql.answer.multi_step import MultiStepResult
from dpsql.answer.result import Result
from dpsql.core.cost import Cost
from dpsql.core.ledger.filters import RemainingBudget, SpentBudget
from dpsql.core.ledger.lines import Entry
from dpsql.errors import DPSQLError
from dpsql.schema.columns import TableSchema
from dpsql.schema.intervals import Interval
from dpsql.session.costs import Quote

LEVEL = 0.95
"""Level of the intervals of an answer."""
_EXACT = 2**53


def cell_in_json(cell: Any) -> Any:
    """Return a cell in JSON: integers beyond 2^53, infinite numbers, dates and timestamps become text."""
    if isinstance(cell, bool) or cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, int):
        return cell if abs(cell) <= _EXACT else str(cell)
    return float(cell) if math.isfinite(cell) else repr(float(cell))


def cells_in_json(cells: Iterable[Any]) -> list[Any]:
    return [cell_in_json(cell) for cell in cells]


def result_in_json(result: Result) -> dict[str, Any]:
    """Return an answer: its columns with the ends of their intervals, the table as printed, and its notes."""
    own = {column.name for column in result._export_columns(None)}
    words = result._text_cells(LEVEL)
    _, panels = result._plot_parts(LEVEL)
    return {
        "columns": [
            {
                "name": each.name,
                "type": str(each.kind),
                "end": each.name not in own,
                "values": cells_in_json(each.cells),
            }
            for each in result._export_columns(LEVEL)
        ],
        "drawn": [panel.name for panel in panels],
        "table": {
            "heads": words.heads,
            "rows": words.rows,
            "numeric": words.numeric,
            "limits": sorted(words.limits),
            "spans": [
                [span.place, cells_in_json(span.values), cells_in_json(span.low), cells_in_json(span.high)]
                for span in words.spans
            ],
        },
        "level": LEVEL,
        "notes": list(result.notes),
        "warnings": list(result.warnings),
        "footer": result.footer,
        "heading": result._heading,
        "replayed": result.replayed,
        "price": result._cost_text,
        "loss": cost_in_json(result.loss),
        "bounds": {name: cells_in_json(pair) for name, pair in result.bounds.items()},
        **({"answers": answers_in_json(result.answers)} if isinstance(result, MultiStepResult) else {}),
    }


def answers_in_json(answers: Iterable[object]) -> list[dict[str, Any]]:
    """Return the answers that a multi-step query was computed from, each with its explanation."""
    return [
        {**result_in_json(each), "explanation": explanation_in_json(each.explanation)}
        for each in answers
        if isinstance(each, Result)
    ]


def explanation_in_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation: as text with and without the remaining budget, and as a dictionary."""
    return {
        "text": str(explanation),
        "text_without_budget": str(replace(explanation, left=None)),
        "plan": explanation.plan,
        "explanation": plain(explanation.to_dict()),
        "left": None if explanation.left is None else remaining_in_json(explanation.left),
    }


def plain(value: Any) -> Any:
    """Return a value as dictionaries, lists and finite numbers."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return cell_in_json(value.item() if hasattr(value, "item") else value)


def quote_in_json(quote: Quote) -> dict[str, Any]:
    """Return a quoted cost."""
    return {
        "cost": cost_in_json(quote.cost),
        "left": remaining_in_json(quote.left),
        "admitted": quote.admitted,
        "most": quote.most,
        "most_whole": quote.most_whole,
        "conversion": None if quote.conversion is None else str(quote.conversion),
        "replayed": quote.replayed,
    }


def cost_in_json(cost: Cost) -> dict[str, Any]:
    """Return a cost as exact fractions."""
    epsilon = None if cost.epsilon is None else str(cost.epsilon)
    return {"epsilon": epsilon, "delta": str(cost.delta), "rho": str(cost.rho), "hidden": str(cost.hidden)}


def remaining_in_json(left: RemainingBudget) -> dict[str, Any]:
    rho = None if left.rho is None else str(left.rho)
    return {"epsilon": str(left.epsilon), "delta": str(left.delta), "rho": rho}


def spent_in_json(spent: SpentBudget) -> dict[str, Any]:
    return {"epsilon": str(spent.epsilon), "delta": str(spent.delta), "rho": str(spent.rho)}


def entry_in_json(entry: Entry) -> dict[str, Any]:
    """Return a charge of the analyst."""
    return {"time": entry.time, "sql": entry.label, "cost": cost_in_json(entry.cost)}


def table_in_json(table: TableSchema) -> dict[str, Any]:
    """Return the declared facts of a table."""
    word, limits = table.unit_word, table.limits
    return {
        "name": table.name,
        "public": table.public,
        "unit": None if word is None else {"column": word.column, "table": word.table, "key": word.key},
        "limits": {"rows": limits.rows, "groups": limits.groups, "per_group": limits.per_group},
        "columns": [
            {
                "name": each.name,
                "type": str(each.type),
                "nullable": each.nullable,
                "bounds": _ends(each.bounds),
                "keys": None if each.keys is None else cells_in_json(each.keys),
                "auto": each.auto,
            }
            for each in table.columns
        ],
    }


def _ends(bounds: Interval | None) -> list[Any] | None:
    return None if bounds is None else cells_in_json((bounds.lower, bounds.upper))


def error_in_json(error: DPSQLError, status: int, *, charged: bool = False) -> dict[str, Any]:
    """Return an error of the library as a problem of RFC 9457."""
    span = error.span
    return {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": status,
        "detail": error.message,
        "caret": None if span is None else span.caret(),
        "span": None if span is None else [span.start, span.end],
        "hint": error.hint,
        "about": error.about,
        "charged": charged,
    }
