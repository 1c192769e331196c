"""Regular expressions: REGEXP_MATCHES, REGEXP_EXTRACT, REGEXP_REPLACE, SIMILAR TO, RLIKE and similar.

Patterns are constants. Each is checked once, before any charge, and means the same on every engine with the library:
patterns that depend on Unicode tables are refused.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal
from dpsql.plan.functions.regular_expressions import MOST_GROUPS, Pattern, pattern_of
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import Bind, ScalarBinder
from dpsql.sql.syntax.source_text import own_word

MOST_BYTES = 1_000
_HINT = "LIKE, STARTS_WITH and CONTAINS take any pattern."
_FLAGS = {"c": "", "i": "i", "s": "s", "m": "", "n": "", "p": ""}
"""DuckDB's options as pattern flags: with m, n and p a point matches no line end, as it does by default."""
_NO_CASE = re.compile(r"\(\?[A-Za-z-]*i")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def matching(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind REGEXP_MATCHES, REGEXP_LIKE, RLIKE and ~, which search, and SIMILAR TO, which matches the whole text."""
    whole = isinstance(node, exp.SimilarTo | exp.RegexpFullMatch)
    pattern, _ = _pattern(binder, node, bind, node.expression, node.args.get("flag") or node.args.get("options"))
    return binder.apply("regexp_full_match" if whole else "regexp_matches", node, [bind(node.this), pattern])


def extracting(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind REGEXP_EXTRACT(text, pattern [, group [, options]])."""
    pattern, ready = _pattern(binder, node, bind, node.expression, node.args.get("parameters"))
    value, written = bind(node.this), node.args.get("group")
    if written is None:
        return binder.apply("regexp_extract", node, [value, pattern])
    group = bind(written)
    number = group.value if isinstance(group, Literal) and group.type is Type.INTEGER else None
    if not isinstance(number, int) or not 0 <= number <= MOST_GROUPS:
        raise SQLSyntaxError(
            f"the group of REGEXP_EXTRACT is a constant from 0 to {MOST_GROUPS}.", span=binder.span(node)
        )
    if ready is not None and number > ready.groups:
        raise SQLSyntaxError(
            f"the pattern has {ready.groups} groups in parentheses, and no group {number}.", span=binder.span(node)
        )
    return binder.apply("regexp_extract", node, [value, pattern, group])


def replacing(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind REGEXP_REPLACE(text, pattern, replacement [, options]): the first match, or all with option g."""
    modifiers = node.args.get("modifiers")
    options = str(modifiers.this) if isinstance(modifiers, exp.Literal) and modifiers.is_string else ""
    kept = exp.Literal.string(options.replace("g", "")) if options else modifiers
    pattern, ready = _pattern(binder, node, bind, node.expression, kept)
    new = bind(node.args.get("replacement") or exp.Literal.string(""))
    if not isinstance(new, Literal) or (new.value is not None and new.type is not Type.TEXT):
        raise UnsupportedSQL("the replacement of REGEXP_REPLACE is a constant text.", span=binder.span(node))
    _check_replacement(binder, node, str(new.value or ""), ready)
    name = "regexp_replace_all" if "g" in options else "regexp_replace"
    return binder.apply(name, node, [bind(node.this), pattern, new])


def _check_replacement(binder: ScalarBinder, node: exp.Expr, new: str, ready: Pattern | None) -> None:
    """Refuse a meaningless backslash, and a group missing from the pattern."""
    rest = new.replace(r"\\", "")
    groups = [int(sign) for sign in re.findall(r"\\([0-9])", rest)]
    if rest.count("\\") != len(groups):
        raise SQLSyntaxError(
            r"a \ of a replacement stands before the number of a group, or another \.", span=binder.span(node)
        )
    if ready is not None and any(group > ready.groups for group in groups):
        raise SQLSyntaxError(
            f"the pattern has {ready.groups} groups in parentheses, and the replacement asks for more.",
            span=binder.span(node),
        )


def named(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind GoogleSQL's REGEXP_CONTAINS(text, pattern)."""
    if len(node.expressions) != 2:
        raise SQLSyntaxError(f"{str(node.this).upper()} takes 2 arguments.", span=binder.span(node))
    pattern, _ = _pattern(binder, node, bind, node.expressions[1], None)
    return binder.apply("regexp_matches", node, [bind(node.expressions[0]), pattern])


def _pattern(
    binder: ScalarBinder, node: exp.Expr, bind: Bind, written: exp.Expr, options: exp.Expr | None
) -> tuple[Literal, Pattern | None]:
    """Return the pattern with its options, and its compiled form; neither for NULL. Raises UnsupportedSQL,
    SQLSyntaxError."""
    word = own_word(type(node).__name__.upper(), node, binder.sql)
    bound, flags = bind(written), None if options is None else bind(options)
    constants = [each for each in (bound, flags) if each is not None]
    if not all(isinstance(each, Literal) and (each.value is None or each.type is Type.TEXT) for each in constants):
        raise UnsupportedSQL(f"the pattern of {word} is a constant text.", span=binder.span(node), hint=_HINT)
    if any(isinstance(each, Literal) and each.value is None for each in constants):
        return Literal(None, Type.TEXT), None
    assert isinstance(bound, Literal)  # all of them are literals
    text = _with_flags(binder, node, str(bound.value), str(flags.value) if isinstance(flags, Literal) else "")
    _check(binder, node, text)
    ready = pattern_of(text)
    if ready is None:
        raise SQLSyntaxError(
            "the pattern is no regular expression, or too large.",
            span=binder.span(node),
            hint="The syntax is RE2's: without look-around and back-references.",
        )
    return Literal(text, Type.TEXT), ready


def _with_flags(binder: ScalarBinder, node: exp.Expr, pattern: str, options: str) -> str:
    unknown = [sign for sign in options if sign not in _FLAGS]
    if unknown:
        raise UnsupportedSQL(
            f"no option {unknown[0]} of a pattern.",
            span=binder.span(node),
            hint="There are c, i, s, m, and g to replace.",
        )
    last = [sign for sign in options if sign in "ci"][-1:]
    flags = ("i" if last == ["i"] else "") + ("s" if "s" in options else "")
    return f"(?{flags}){pattern}" if flags else pattern


def _check(binder: ScalarBinder, node: exp.Expr, pattern: str) -> None:
    """Refuse patterns that are too long or depend on Unicode tables, which differ between versions."""
    if len(pattern.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise UnsupportedSQL(f"a pattern has at most {MOST_BYTES:,} bytes.", span=binder.span(node))
    escapes = _ESCAPE.findall(pattern)
    if any(sign in "pPC" for sign in escapes):
        raise UnsupportedSQL(
            r"\p, \P and \C of a pattern are not supported: tables of Unicode differ.",
            span=binder.span(node),
            hint="List the characters, or use [[:alpha:]], which is of ASCII.",
        )
    beyond = not pattern.isascii() or any(sign == "x" or sign.isdigit() for sign in escapes)
    if _NO_CASE.search(pattern) and beyond:
        raise UnsupportedSQL(
            "a pattern without regard to case is of ASCII alone: tables of Unicode differ.",
            span=binder.span(node),
            hint="List both cases, or compare LOWER(x).",
        )


def bound(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind the function of a node with a pattern."""
    if isinstance(node, exp.Anonymous):
        return named(binder, node, bind)
    if isinstance(node, exp.RegexpExtract):
        return extracting(binder, node, bind)
    return (replacing if isinstance(node, exp.RegexpReplace) else matching)(binder, node, bind)
