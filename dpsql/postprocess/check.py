"""Check of a statement's DuckDB syntax tree against the allow-list of `allowed_sql`.

The tree is DuckDB's own for the very text that runs: its functions by the names that DuckDB looks up, its relations,
its types. Unlisted classes and types, unknown relations, samples, versions and databases are refused. Every object of
the tree is visited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dpsql.errors import UnknownTable, UnsupportedSQL
from dpsql.postprocess.allowed_sql import (
    AGGREGATES,
    EXPRESSIONS,
    FUNCTIONS,
    NODES,
    READS_SURROUNDINGS,
    TABLE_FUNCTIONS,
    TYPES,
    WINDOWS,
)
from dpsql.postprocess.work_limits import argument_of, whole_constant

Tree = dict[str, Any]
OVER_ANSWERS = "SQL over answers"
COMMON = "__cte_"
"""Prefix of all CTE names: they are renamed when a statement is split."""


def check(tree: Tree, frames: Mapping[str, Collection[str]]) -> None:
    """Refuse a tree with elements that are not listed. frames: the columns of all relations, by folded name. Raises
    UnsupportedSQL, UnknownTable."""
    common = {name.casefold() for name in _common(tree)}
    if not all(name.startswith(COMMON) for name in common):  # otherwise it could mean a view of DuckDB elsewhere
        raise UnsupportedSQL(f"names of CTEs begin with {COMMON} in {OVER_ANSWERS}.")
    names = {*frames, *common}
    own = {column.casefold() for columns in frames.values() for column in columns}
    own |= {str(node.get("alias")).casefold() for node in objects(tree)}
    for node in objects(tree):
        kind, word = node.get("class"), node.get("type")
        if isinstance(kind, str):
            _check_expression(node, kind, word)
            if kind == "COLUMN_REF":
                _check_column(node["column_names"], own)
        elif isinstance(word, str) and word not in NODES:
            raise UnsupportedSQL(f"{_shown(word)} is not supported in {OVER_ANSWERS}.")
        elif word == "BASE_TABLE":
            _check_table(node, names)
        elif word == "TABLE_FUNCTION":
            _check_call(node["function"], TABLE_FUNCTIONS, "table function")
        for clause, said in (("sample", "TABLESAMPLE"), ("at_clause", "AT"), ("ranking_expression", "NEAREST")):
            if node.get(clause) is not None:
                raise UnsupportedSQL(f"{said} is not supported in {OVER_ANSWERS}.")


def objects(tree: Any) -> Iterator[Tree]:
    """Yield every object of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _common(tree: Tree) -> Iterator[str]:
    """Yield the names of common table expressions."""
    for node in objects(tree):
        for entry in (node.get("cte_map") or {}).get("map", ()):
            yield entry["key"]


def _check_expression(node: Tree, kind: str, word: Any) -> None:
    if word not in EXPRESSIONS.get(kind, ()):
        raise UnsupportedSQL(f"{_shown(str(word))} is not supported in {OVER_ANSWERS}.")
    if kind == "FUNCTION":
        _check_call(node, FUNCTIONS, "function")
        if node.get("export_state"):
            raise UnsupportedSQL(f"EXPORT_STATE is not supported in {OVER_ANSWERS}.")
    elif kind == "WINDOW":
        _check_call(node, {**AGGREGATES, **WINDOWS}, "window function")
        if str(node["function_name"]).casefold() == "ntile":
            _check_buckets(whole_constant(argument_of(node["arguments"][0])))
    elif kind == "TYPE":
        _check_unqualified(node)
        if str(node["type_name"]).upper() not in TYPES:
            raise UnsupportedSQL(f"the type {_shown(node['type_name'])} is not supported in {OVER_ANSWERS}.")


def _check_column(names: list[str], own: Collection[str]) -> None:
    """Refuse a bare name that DuckDB takes for a function if no column has it. Names with a constant value are allowed
    as columns."""
    word = names[0].casefold() if len(names) == 1 else ""
    if word in READS_SURROUNDINGS and not (word in _ALWAYS_THE_SAME and word in own):
        raise UnsupportedSQL(
            f"{_shown(names[0])} is not supported in {OVER_ANSWERS}: an answer must not change with the clock or "
            "the place."
        )


_ALWAYS_THE_SAME = frozenset({"rowid", "user", "current_user", "session_user", "current_role"})
"""Constant in a separate instance, whose rows have a fixed order."""


def _check_call(node: Tree, listed: Any, what: str) -> None:
    _check_unqualified(node)
    name, size = str(node["function_name"]).casefold(), len(node["arguments"])
    if name not in listed:
        hint = _INSTEAD.get(name, "")
        raise UnsupportedSQL(f"the {what} {_shown(name)} is not supported in {OVER_ANSWERS}.", hint=hint)
    if size not in listed[name]:
        raise UnsupportedSQL(
            f"the {what} {_shown(name)} with {size} argument{'' if size == 1 else 's'} is not supported in "
            f"{OVER_ANSWERS}."
        )


def _check_buckets(number: int | None) -> None:
    """Refuse a constant that DuckDB would refuse at run time, after the answer was charged."""
    if number is not None and number < 1:
        raise UnsupportedSQL(f"NTILE takes a number of 1 or more, not {number}.", hint="Write NTILE(4).")


_INSTEAD = {
    "to_char": "Write STRFTIME(d, '%Y-%m').",
    "random": "An answer depends on the data and the noise alone.",
}


def _check_unqualified(node: Tree) -> None:
    if node.get("schema") or node.get("catalog") or len((node.get("qualified_name") or {}).get("path", ())) > 1:
        raise UnsupportedSQL(f"a name with a database or schema before it is not supported in {OVER_ANSWERS}.")


def _check_table(node: Tree, names: Collection[str]) -> None:
    path = (node.get("qualified_name") or {}).get("path") or [node.get("table_name", "")]
    if node.get("schema_name") or node.get("catalog_name") or len(path) > 1:
        raise UnknownTable("a table is named by one word, without a database.")
    if str(node["table_name"]).casefold() not in names or path != [node["table_name"]]:
        raise UnknownTable(f'no table "{_shown(node["table_name"])}" here.')


def _shown(word: str) -> str:
    return " ".join(str(word).split())[:40].upper()
