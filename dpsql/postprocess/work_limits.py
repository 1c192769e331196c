"""Upper bounds on a statement's work, from its text: rows of each relation, and the size of their values.

DuckDB's limits of time and memory do not stop every function, so statements with large bounds are refused. The rows of
a query are at most the product over the relations in its FROM, and the sum over UNION. The `width` of a value, in
characters or elements, is bounded by its parts: a sum over arguments, or a product if one argument is the number of
repetitions of another. Names are not resolved: a column is as wide as the widest value of the relations that its SELECT
reads. Both bounds hold if cells are at most `CELL` wide; a statement is accepted if its bounds and those of its parts
are small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from dpsql.errors import UnsupportedSQL

MOST_ROWS = 10**7
"""Most rows of an intermediate relation, by the sizes of its inputs."""
MOST_SERIES = 10**6
"""Most numbers of one generate_series or range."""
MOST_WIDTH = 10**6
"""Most characters or elements of a value."""
MOST_MADE = 10_000
"""Most characters of a text from repeat, lpad or rpad."""
CELL = 100
MOST_WORK = 10**8
"""Most characters or elements in all values of one call, if each is wider than ten cells and than its inputs. DuckDB
checks for interrupts only between blocks of rows."""

Tree = dict[str, Any]
Size = tuple[int, int]
"""Rows, and the width of a value."""

_TAKEN = {"repeat", "lpad", "rpad"}
_SERIES = {"range", "generate_series"}
_REPLACING = {"replace", "regexp_replace", "translate", "overlay"}
_FILTERING = {"list_filter", "array_filter", "filter"}
_MAPPING = {"list_transform", "array_transform", "list_apply", "array_apply", "apply"} | _FILTERING
_WIDENING = {"bin": 32, "to_binary": 32, "hex": 8, "to_hex": 8, "to_base64": 6, "base64": 6}
"""Output characters for each input character, which has up to four bytes; 64 for a number."""
_SUMMING = {
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "||",
    "abs",
    "round",
    "floor",
    "ceil",
    "sqrt",
    "ln",
    "concat",
    "upper",
    "lower",
}
"""Functions whose value is no wider than their arguments together."""
_PLAIN = {
    "FUNCTION",
    "COLUMN_REF",
    "CONSTANT",
    "CAST",
    "CASE",
    "COMPARISON",
    "CONJUNCTION",
    "OPERATOR",
    "BETWEEN",
    "TYPE",
}
_FORMATTING = {"printf", "format"}
PLACES = {
    "printf": re.compile(r"%%|%[-+ 0#,]*[0-9]{0,2}(?:\.[0-9]{1,2})?[dsfgexXo]"),
    "format": re.compile(r"\{\{|\}\}|\{[0-9]?(?::[<>^]?[-+ ]?#?0?[0-9]{0,2},?(?:\.[0-9]{1,2})?[dsfgexXo]?)?\}"),
}
"""Placeholders of a format, of at most 99 characters and 99 digits."""
SIGNS = {"printf": "%", "format": "{}"}
MOST_OF_BAR = 1_000
"""Most characters that BAR makes."""
_GATHERING = {"array_agg", "list", "string_agg", "group_concat", "listagg", "histogram"}
_FIXED = {"md5", "sha1", "sha256", "count", "count_star", "length", "len", "typeof", "hash"}


def check_work(tree: Tree, rows: Mapping[str, int], widest: int = CELL) -> None:
    """Refuse a statement whose work bounds are too large. rows: of each frame, by folded name; widest: the characters
    of their widest cell. Raises UnsupportedSQL."""
    for statement in tree["statements"]:
        _Work({name: (size, max(CELL, widest)) for name, size in rows.items()}).query(statement["node"])


class _Work:
    """Size bounds, given the sizes of the relations in scope."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        self.sizes = dict(sizes)

    def query(self, node: Tree) -> Size:
        inner = _Work(self.sizes)
        for entry in (node.get("cte_map") or {}).get("map", ()):
            inner.sizes[entry["key"].casefold()] = inner.query(entry["value"]["query_node"])
        if node["type"] == "SET_OPERATION_NODE":
            parts = [inner.query(each) for each in node["children"]]
            size = _checked(sum(rows for rows, _ in parts), max(width for _, width in parts))
        elif node["type"] == "SELECT_NODE":
            size = inner.select(node)
        else:
            raise UnsupportedSQL(f"{node['type'][:40]} is not supported in SQL over answers.")
        return inner.modified(node, size)

    def select(self, node: Tree) -> Size:
        rows, width = self.relation(node["from_table"])
        rest = {key: each for key, each in node.items() if key not in ("from_table", "cte_map", "modifiers")}
        wide = max([width, *(self.width(each, (rows, width)) for each in node["select_list"])])
        self.width({key: each for key, each in rest.items() if key != "select_list"}, (rows, width))
        sets = max(1, len(node.get("group_sets") or ()))
        return _checked(rows * sets * self.unnested(node["select_list"], (rows, width)), wide)

    def unnested(self, items: Any, size: Size) -> int:
        """Return how many rows UNNEST in the SELECT list makes from one."""
        calls = [each for each in _functions(items) if each["function_name"].casefold() == "unnest"]
        times = 1
        for each in calls:
            times *= max(1, self.width(each["arguments"], size))
        return times

    def modified(self, node: Tree, size: Size) -> Size:
        rows, width = size
        for each in node.get("modifiers") or ():
            self.width({key: part for key, part in each.items() if key != "limit"}, size)
            most = whole_constant(each.get("limit"))
            if each.get("limit_type") == "ROW_COUNT" and most is not None:
                rows = min(rows, max(most, 0))
        return rows, width

    def relation(self, node: Tree) -> Size:
        kind = node["type"]
        if kind == "EMPTY":
            return 1, 1
        if kind == "BASE_TABLE":
            return self.sizes.get(node["table_name"].casefold(), (MOST_ROWS, CELL))
        if kind == "SUBQUERY":
            return self.query(node["subquery"]["node"])
        if kind == "JOIN":
            left, right = self.relation(node["left"]), self.relation(node["right"])
            size = _checked(left[0] * right[0], max(left[1], right[1]))
            if node.get("condition") is not None:
                self.width(node["condition"], size)
            return size
        if kind == "EXPRESSION_LIST":
            return _checked(len(node["values"]), max(1, self.width(node["values"], (1, 1))))
        if kind == "TABLE_FUNCTION":
            width = self.width(node["function"]["arguments"], (1, 1))
            if node["function"]["function_name"].casefold() in _SERIES:
                return _series(node["function"]), 1
            return _checked(width, width)
        raise UnsupportedSQL(f"{kind[:40]} is not supported in SQL over answers.")

    def width(self, node: Any, size: Size) -> int:
        """Return the width of an expression over rows of this size; the sum for several expressions."""
        if isinstance(node, list):
            return min(MOST_WIDTH + 1, sum(self.width(each, size) for each in node))
        if not isinstance(node, dict):
            return 0
        kind = node.get("class")
        if kind in ("COLUMN_REF", "LAMBDA_REF", "STAR"):
            return size[1]
        if kind == "CONSTANT":
            return len(str((node.get("literal") or {}).get("text", node.get("value") or "")))
        if kind == "PARAMETER":
            return CELL
        if kind == "SUBQUERY":
            rows, width = self.query(node["subquery"]["node"])
            _checked(size[0] * rows, 1)
            return width + self.width(node.get("child"), size)
        if kind in ("FUNCTION", "WINDOW"):
            return self.call(node, size)
        return _checked(1, self.width([each for key, each in node.items() if key != "type_expr"], size))[1]

    def call(self, node: Tree, size: Size) -> int:
        """Return the width of a call, after checking the total over all rows."""
        wide = self.made(node, size)
        names = {node["function_name"], *(each["function_name"] for each in _functions(node))}
        gathered = not _GATHERING.isdisjoint(name.casefold() for name in names)  # its width already includes the rows
        if wide > max(10 * CELL, size[1]) and not gathered and size[0] * wide > MOST_WORK:
            raise UnsupportedSQL(
                f"SQL over answers may make {MOST_WORK:,} characters or elements by one function, and "
                f"{node['function_name'].upper()[:40]} could make more over so many rows."
            )
        return wide

    def made(self, node: Tree, size: Size) -> int:
        name, arguments = node["function_name"].casefold(), [argument_of(each) for each in node["arguments"]]
        widths = [self.width(each, size) for each in arguments]
        rest = {key: each for key, each in node.items() if key != "arguments"}
        self.width(list(rest.values()), size)
        if name in _SERIES:
            return _series(node)
        if name in _TAKEN:
            most = whole_constant(arguments[1])
            if most is None or most > MOST_MADE or (name == "repeat" and max(most, 0) * widths[0] > MOST_MADE * CELL):
                raise UnsupportedSQL(
                    f"{name.upper()} makes texts of a constant size of at most {MOST_MADE:,} characters in SQL over "
                    "answers."
                )
            return _checked(1, widths[0] * max(most, 1) if name == "repeat" else max(widths[0], most))[1]
        if name in _REPLACING:
            return _checked(1, (widths[0] + 1) * max(1, *widths[1:]))[1]
        if name in _MAPPING:
            # A filter's lambda costs as much for each element as a transformation's lambda.
            return _checked(1, widths[0] * self.per_element(arguments[1], (size[0], max(size[1], widths[0]))))[1]
        if name in _FORMATTING:
            return _checked(1, _formatted(name, arguments, sum(widths)))[1]
        if name == "bar":
            _check_bar(arguments)
            return MOST_OF_BAR
        if name in _WIDENING:
            return _checked(1, max(64, widths[0] * _WIDENING[name]))[1]
        if name in _GATHERING:
            return _checked(1, size[0] * sum(widths))[1]
        return 1 if name in _FIXED else _checked(1, sum(widths))[1]

    def per_element(self, body: Any, size: Size) -> int:
        """Return the width of a lambda's value, for each character or element of its list.

        A sum of constants and the element is no wider than its terms together: over all elements that is at most the
        width of the list times the number of terms."""
        lhs = body.get("lhs") if isinstance(body, dict) else None
        name = lhs.get("column_names") if isinstance(lhs, dict) else None
        parts = _within(body["expr"]) if name else []
        calls = {str(each["function_name"]).casefold() for each in _functions(parts[:1])}
        kinds = {each["class"] for each in parts if "class" in each}
        own = all(each["column_names"] == name for each in parts if each.get("class") == "COLUMN_REF")
        is_sum = bool(parts) and own and calls <= _SUMMING and kinds <= _PLAIN
        return max(1, self.width(body["expr"] if is_sum else body, (size[0], 1) if is_sum else size))


def _formatted(name: str, arguments: Sequence[Any], width: int) -> int:
    """Return the most characters that PRINTF or FORMAT makes. Raises UnsupportedSQL for a format whose size is not
    known from the text."""
    literal = (arguments[0].get("literal") or {}) if isinstance(arguments[0], dict) else {}
    text = str(literal.get("text", "")) if literal.get("kind") == "STRING" else None
    places = None if text is None else PLACES[name].sub("", text)
    if text is None or places is None or any(sign in places for sign in SIGNS[name]):
        raise UnsupportedSQL(
            f"{name.upper()} takes a constant format with simple places in SQL over answers.",
            hint="Write PRINTF('%s: %d', s, n), PRINTF('%5.1f', x), or FORMAT('{:>8.1f}', x).",
        )
    return len(text) + width + 1_000 * len(PLACES[name].findall(text))


def _check_bar(arguments: Sequence[Any]) -> None:
    """Refuse a width of BAR that is not constant, or too large."""
    width = whole_constant(arguments[3]) if len(arguments) == 4 else 0
    if width is None or not 0 <= width <= MOST_OF_BAR:
        raise UnsupportedSQL(
            f"BAR takes a constant width of at most {MOST_OF_BAR:,} characters.", hint="Write BAR(n, 0, 100, 40)."
        )


def _within(node: Any) -> list[Tree]:
    """Return the objects of an expression."""
    if isinstance(node, list):
        return [each for part in node for each in _within(part)]
    return [node, *(each for part in node.values() for each in _within(part))] if isinstance(node, dict) else []


def argument_of(node: Any) -> Any:
    return node["expression"] if isinstance(node, dict) and "expression" in node else node


def _functions(node: Any) -> list[Tree]:
    """Return the calls of an expression, excluding those in its sub-queries."""
    if isinstance(node, list):
        return [each for part in node for each in _functions(part)]
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return []
    own = [node] if node.get("class") == "FUNCTION" else []
    return own + [each for part in node.values() for each in _functions(part)]


def _series(node: Tree) -> int:
    """Return the number of values of a series. Raises UnsupportedSQL if it is not constant, or too large."""
    name = node["function_name"].upper()
    ends = [whole_constant(argument_of(each)) for each in node["arguments"]]
    if any(each is None for each in ends) or not ends:
        _refuse_series(name)
    start, stop, step = (0, ends[0], 1) if len(ends) == 1 else (ends[0], ends[1], ends[2] if len(ends) == 3 else 1)
    assert start is not None
    assert stop is not None
    assert step is not None
    rows = abs(stop - start) // max(1, abs(step)) + 1
    if rows > MOST_SERIES:
        _refuse_series(name)
    return rows


def _refuse_series(name: str) -> NoReturn:
    raise UnsupportedSQL(
        f"{name} takes whole constants in SQL over answers, and makes at most {MOST_SERIES:,} values.",
        hint=f"Write {name}(1, 12); a calendar is DATE '2025-01-01' + i of {name}(0, 364) AS t(i).",
    )


def whole_constant(node: Any) -> int | None:
    """Return an integer constant of the text; None for other nodes."""
    if not isinstance(node, dict):
        return None
    if node.get("class") == "FUNCTION" and node["function_name"] == "-" and len(node["arguments"]) == 1:
        inner = whole_constant(argument_of(node["arguments"][0]))
        return None if inner is None else -inner
    literal = node.get("literal") if node.get("class") == "CONSTANT" else None
    text = str((literal or {}).get("text", ""))
    return int(text) if literal and literal.get("kind") == "INTEGER" and text.removeprefix("-").isdecimal() else None


def _checked(rows: int, width: int) -> Size:
    if rows > MOST_ROWS:
        raise UnsupportedSQL(
            f"SQL over answers may make at most {MOST_ROWS:,} rows on the way, and this could make more: sizes of "
            "relations in one FROM multiply.",
            hint="Cut the answers by LIMIT, or join fewer of them.",
        )
    if width > MOST_WIDTH:
        raise UnsupportedSQL(
            f"SQL over answers may make values of at most {MOST_WIDTH:,} characters or elements, and this could make "
            "larger ones."
        )
    return rows, width
