"""Texts: their lengths, pieces and patterns."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.dialects.reading import DialectText, called, number


def like(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    pattern = node.expression
    if isinstance(pattern, exp.Literal | exp.RawString) and "\\" in pattern.name:
        raise reading.refused(node, "LIKE with a backslash is not read.", "Write LIKE '50!%' ESCAPE '!'.")
    return exp.ILike(this=node.this, expression=pattern) if reading.habits.ignores_case else None


def length(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    inner = node.this
    if reading.habits.name == "tsql":  # LEN ignores trailing blanks
        inner = called("RTRIM", inner.this if isinstance(inner, exp.Cast) else inner)
    if node.args.get("binary") and reading.habits.counts_bytes:
        raise reading.uncertain(node, "LENGTH, a number of bytes,", "Write CHAR_LENGTH(x), the number of characters.")
    return called("LENGTH", inner)


def substring(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    start = node.args.get("start")
    if not (isinstance(start, exp.Literal) and start.is_int and int(start.name) >= 1):
        raise reading.uncertain(
            node, "SUBSTRING from 0, from the end, or from a computed place", "Write LEFT or RIGHT."
        )
    length = node.args.get("length")
    return called("SUBSTRING", node.this, start, *([] if length is None else [length]))


def place(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        raise reading.refused(node, "a search that begins later in a text is not supported.")
    return None


def piece(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate SPLIT_PART: engines agree on positions from 1 and non-empty separators."""
    separator, place = node.args.get("delimiter"), node.args.get("part_index")
    if not _is_text(separator) or not (isinstance(place, exp.Literal) and place.is_int and int(place.name) >= 1):
        raise reading.refused(node, "SPLIT_PART takes a text as separator here, and a place from 1 on.")
    assert separator is not None
    return called("SPLIT_PART", node.this, separator, place)


def element(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate SPLIT(x, '-')[0]: a piece of a text, NULL if it has too few."""
    split, at = node.this, node.expressions[0] if len(node.expressions) == 1 else None
    plain = isinstance(split, exp.Split) or (isinstance(split, exp.RegexpSplit) and _is_plain(split.expression))
    if not plain or not _is_text(split.expression) or not (isinstance(at, exp.Literal) and at.is_int):
        raise reading.refused(node, "of lists only SPLIT(x, '-')[0] is read, with a number and a separator.")
    place = int(at.name) - (node.args.get("offset") or 0)
    if place < 0:
        raise reading.refused(node, "this place of a list is not read.", "Places before the first are not supported.")
    separator = split.expression
    piece = called("SPLIT_PART", split.this, separator, number(place + 1))
    if place == 0:
        return piece
    gone = called("REPLACE", split.this.copy(), separator.copy(), exp.Literal.string(""))
    letters = exp.Sub(this=called("LENGTH", split.this.copy()), expression=called("LENGTH", gone))
    enough = exp.GTE(this=exp.Paren(this=letters), expression=number(place * len(separator.name)))
    return exp.Case(ifs=[exp.If(this=enough, true=piece)])


def _is_text(node: object) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and bool(node.name)


def _is_plain(node: object) -> bool:
    """Return whether a pattern is literal text."""
    return isinstance(node, exp.Literal) and not set(node.name) & set("\\.[](){}*+?|^$")


def _pattern(node: exp.Expr, reading: DialectText) -> exp.Expr:
    """Return a node's pattern, made case-insensitive if the dialect ignores case."""
    pattern: exp.Expr = node.expression
    if not reading.habits.ignores_case:
        return pattern
    if not isinstance(pattern, exp.Literal):
        raise reading.refused(node, "a pattern has to be a constant here.")
    return exp.Literal.string(f"(?i){pattern.name}")


def matches(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    if node.args.get("flag") is not None:
        raise reading.refused(node, "flags of a pattern are not read.", "Write (?i) at its beginning.")
    whole = node.args.get("full_match") or isinstance(node, exp.RegexpFullMatch)
    return called("REGEXP_FULL_MATCH" if whole else "REGEXP_MATCHES", node.this, _pattern(node, reading))


def extracted(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate extraction: without a match, NULL or an empty text as in the dialect."""
    if any(node.args.get(each) is not None for each in ("position", "occurrence", "parameters")):
        raise reading.refused(node, "REGEXP_EXTRACT takes a text, a pattern and a group here.")
    pattern, group = _pattern(node, reading), node.args.get("group")
    if group is None:
        has_group = isinstance(pattern, exp.Literal | exp.RawString) and "(" in pattern.name
        if has_group:
            raise reading.refused(
                node, "which group of the pattern is meant is not certain.", "Write the group as third argument."
            )
        group = number(0)
    part = called("REGEXP_EXTRACT", node.this, pattern, group)
    if reading.habits.name in ("spark", "databricks", "hive"):
        return part
    matched = called("REGEXP_MATCHES", node.this.copy(), pattern.copy())
    return exp.Case(ifs=[exp.If(this=matched, true=part)])


def joined(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate || and CONCAT, where Oracle treats NULL as an empty text."""
    if reading.habits.name != "oracle":
        return None
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    return called("CONCAT", *parts)
