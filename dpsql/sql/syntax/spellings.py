"""Spellings of functions and aggregates: parser nodes and names for each record of `plan/functions` and
`plan/aggregates`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from dpsql.plan.aggregates import AGGREGATES
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.frozen import dataclass

_SYNTAX = re.compile(r"(\w+)\((.*)\)")
_AGGREGATE = re.compile(r"(\w+)\(([A-Z]* ?)([a-z_, ]+)\)( WITHIN GROUP)?")


@dataclass(frozen=True, slots=True)
class Spelling:
    """The function of a parser node, and the node's arguments in the function's order; `rest` names a list argument."""

    function: str
    args: tuple[str, ...]
    rest: str | None

    def operands(self, node: exp.Expr) -> list[exp.Expr]:
        """Return the node's arguments, without missing ones at the end."""
        values = [node.args.get(name) for name in self.args]
        while values and values[-1] is None:
            values.pop()
        rest = node.args.get(self.rest) or [] if self.rest else []
        return [*(each for each in values if each is not None), *rest]


def _read() -> tuple[dict[type[exp.Expr], Spelling], dict[str, str]]:
    nodes: dict[type[exp.Expr], Spelling] = {}
    names: dict[str, str] = {}
    for function in FUNCTIONS.values():
        for written in function.syntax:
            match = _SYNTAX.fullmatch(written)
            if match is None:
                names[written] = function.name
                continue
            parts = [part.strip() for part in match[2].split(",") if part.strip()]
            plain = tuple(part for part in parts if not part.startswith("*"))
            rest = next((part[1:] for part in parts if part.startswith("*")), None)
            nodes[getattr(exp, match[1])] = Spelling(function.name, plain, rest)
    return nodes, names


NODES: Mapping[type[exp.Expr], Spelling]
"""Parser nodes that are one function each."""
NAMES: Mapping[str, str]
"""Function names without a parser node, in capitals."""
NODES, NAMES = _read()


@dataclass(frozen=True, slots=True)
class AggregateSpelling:
    """The aggregate of a parser node, and the node's arguments, the value first. `mark`: the word that makes the value
    a DISTINCT list or a condition (IF); `ordered`: it may have WITHIN GROUP."""

    aggregate: AggregateFunction
    args: tuple[str, ...]
    mark: str
    ordered: bool


def _read_aggregates() -> dict[type[exp.Expr], tuple[AggregateSpelling, ...]]:
    nodes: dict[type[exp.Expr], tuple[AggregateSpelling, ...]] = {}
    for aggregate in AGGREGATES.values():
        for written in aggregate.syntax:
            match = _AGGREGATE.fullmatch(written)
            assert match is not None, written
            spelling = AggregateSpelling(aggregate, tuple(match[3].split(", ")), match[2].strip(), bool(match[4]))
            node = getattr(exp, match[1])
            nodes[node] = (*nodes.get(node, ()), spelling)
    return nodes


AGGREGATE_NODES: Mapping[type[exp.Expr], tuple[AggregateSpelling, ...]] = _read_aggregates()
"""Parser nodes that are aggregates, the plain spelling first."""


def written_names() -> list[str]:
    """Return all written function names, for near misses."""
    known = [name for node in NODES if issubclass(node, exp.Func) for name in node.sql_names()]
    return sorted(
        {*known, *NAMES, "COUNT", "SUM", "AVG", "CASE", "CAST", "EXTRACT", "DATE_TRUNC", "DATE_DIFF", "LOG10"}
    )
