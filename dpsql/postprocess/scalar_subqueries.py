"""Scalar sub-queries that have several rows by their text: DuckDB would fail on them only after the answers are
charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpsql.errors import UnsupportedSQL
from dpsql.postprocess.allowed_sql import AGGREGATES

Tree = dict[str, Any]


def check_single(tree: Tree, least: Mapping[str, int]) -> None:
    """Refuse a scalar sub-query with several rows. least: the rows that each relation has at least, by folded name.
    Raises UnsupportedSQL."""
    for statement in tree["statements"]:
        _check(statement["node"], dict(least))


def _check(node: Any, least: dict[str, int]) -> None:
    if isinstance(node, list):
        for each in node:
            _check(each, least)
        return
    if not isinstance(node, dict):
        return
    for entry in (node.get("cte_map") or {}).get("map", ()):
        least = {**least, entry["key"].casefold(): _rows(entry["value"]["query_node"], least)}
    if node.get("class") == "SUBQUERY" and node.get("subquery_type") == "SCALAR":
        rows = _rows(node["subquery"]["node"], least)
        if rows > 1:
            raise UnsupportedSQL(
                "a sub-query that stands for a value gives one row, and this one gives several.",
                hint="Take one of them by WHERE on its keys, by LIMIT 1 after ORDER BY, or by an aggregate.",
            )
    for each in node.values():
        _check(each, least)


def _rows(node: Tree, least: Mapping[str, int]) -> int:
    """Return a lower bound on the rows of a query: those of its FROM if nothing removes rows, else 0."""
    if node["type"] != "SELECT_NODE":
        return 0
    clauses = ("where_clause", "having", "qualify", "group_expressions", "sample")
    if any(node.get(each) for each in clauses) or node.get("modifiers"):
        return 0
    calls = (str(each.get("function_name")).casefold() for each in _plain_calls(node["select_list"]))
    if any(name in AGGREGATES or name == "unnest" for name in calls):
        return 0
    source = node["from_table"]
    if source["type"] == "BASE_TABLE":
        return least.get(str(source["table_name"]).casefold(), 0)
    return _rows(source["subquery"]["node"], least) if source["type"] == "SUBQUERY" else 0


def _plain_calls(node: Any) -> Iterator[Tree]:
    if isinstance(node, list):
        for each in node:
            yield from _plain_calls(each)
    elif isinstance(node, dict):
        if node.get("class") == "FUNCTION":
            yield node
        for each in node.values():
            yield from _plain_calls(each)
