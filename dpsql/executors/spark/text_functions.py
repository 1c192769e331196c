"""Functions of texts in Spark's SQL, where texts are also sequences of code points, compared by bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dpsql.executors.spark.date_functions import made_date
from dpsql.executors.spark.literals import braced, quoted
from dpsql.executors.spark.number_functions import Template, decimal_digits, float_text
from dpsql.executors.spark.patterns import like, no_regular_expression
from dpsql.plan.expressions import Call
from dpsql.plan.functions.casts import WIDTHS
from dpsql.plan.functions.letters import cases
from dpsql.plan.functions.regular_expressions import FUNCTIONS as REGULAR
from dpsql.plan.functions.rules import sql_between
from dpsql.plan.functions.text import LONGEST, MOST_CHARACTERS, PLACES, SPACES
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND
from dpsql.schema.text_values import (
    BLANKS,
    FALSE_WORDS,
    FLOAT_FORM,
    INTEGER_FORM,
    MOMENT_FORM,
    PLAIN_FORM,
    TRUE_WORDS,
)

_MOST = 2**31 - 1
"""No text in Spark has more characters."""


@cache
def case_text(name: str, text: str) -> str:
    """Return upper or lower case where it is a single code point: Java's own maps some to two."""
    pairs = cases(name)
    old, new = "".join(map(chr, pairs)), "".join(pairs.values())
    return f"TRANSLATE({text}, {braced(quoted(old))}, {braced(quoted(new))})"


def _trim(where: str) -> Template:
    return lambda call: f"TRIM({where} {'{1}' if len(call.args) == 2 else braced(quoted(SPACES))} FROM {{0}})"


# Parts of texts, by places clipped to Spark's range.


def _from_place(text: str, begin: str, count: str = "") -> str:
    """Return the part from the place `begin` on, counted from 0."""
    start = f"CAST(LEAST({begin}, {_MOST - 1}) AS INT) + 1"
    return f"SUBSTRING({text}, {start}{f', CAST(LEAST({count}, {_MOST}) AS INT)' if count else ''})"


def _substring(call: Call) -> str:
    begin = "CASE WHEN {1} >= 0 THEN {1} - 1 ELSE LENGTH({0}) + {1} END"
    valid = f"{{1}} BETWEEN {int(PLACES.lower)} AND {int(PLACES.upper)}"
    if len(call.args) == 2:
        length = str(LONGEST)
    else:
        length, valid = "{2}", f"{valid} AND {{2}} BETWEEN {int(PLACES.lower)} AND {int(PLACES.upper)}"
    first = f"GREATEST(LEAST({begin}, {begin} + {length}), 0)"
    last = f"GREATEST({begin}, {begin} + {length}, 0)"
    return f"CASE WHEN {{0}} IS NOT NULL AND {valid} THEN {_from_place('{0}', first, f'{last} - {first}')} END"


_LEFT = (
    f"CASE WHEN {{0}} IS NULL OR {{1}} > {LONGEST} THEN NULL WHEN {{1}} >= 0 THEN {_from_place('{0}', '0', '{1}')} "
    f"WHEN {{1}} < 0 THEN {_from_place('{0}', '0', 'GREATEST(LENGTH({0}) + {1}, 0)')} END"
)
_RIGHT = (
    f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {{1}} >= 0 THEN {_from_place('{0}', 'GREATEST(LENGTH({0}) - {1}, 0)')} "
    f"WHEN {{1}} < 0 THEN {_from_place('{0}', f'- GREATEST({{1}}, -{LONGEST})')} END"
)


# Results that can be longer than their arguments are limited to MOST_CHARACTERS before they are made.


def _if_short(length: str, text: str) -> str:
    return f"CASE WHEN {length} <= {MOST_CHARACTERS} THEN {text} END"


def _lengths(count: int, first: int = 0) -> str:
    return " + ".join(f"COALESCE(CAST(LENGTH({{{place}}}) AS BIGINT), 0)" for place in range(first, count))


def _concat(call: Call) -> str:
    parts = ", ".join(f"COALESCE({{{place}}}, '')" for place in range(len(call.args)))
    return _if_short(_lengths(len(call.args)), f"CONCAT({parts})")


def _concat_ws(call: Call) -> str:
    count = len(call.args)
    present = " + ".join(f"CASE WHEN {{{place}}} IS NULL THEN 0 ELSE 1 END" for place in range(1, count))
    signs = f"CAST(LENGTH({{0}}) AS BIGINT) * GREATEST({present} - 1, 0)"
    return _if_short(f"{_lengths(count, 1)} + {signs}", "CONCAT_WS({args})")


_TIMES = "((LENGTH({0}) - LENGTH(REPLACE({0}, {1}, ''))) DIV GREATEST(LENGTH({1}), 1))"
_REPLACE = _if_short(
    f"CAST(LENGTH({{0}}) AS BIGINT) + CAST({_TIMES} AS BIGINT) * (LENGTH({{2}}) - LENGTH({{1}}))",
    "REPLACE({0}, {1}, {2})",
)
_REPEAT = _if_short(
    "CAST(LENGTH({0}) AS DOUBLE) * {1}", f"REPEAT({{0}}, CAST(LEAST(GREATEST({{1}}, 0), {MOST_CHARACTERS}) AS INT))"
)


def _pad(name: str) -> str:
    fits = f"{{1}} <= {MOST_CHARACTERS} AND ({{2}} <> '' OR {{1}} <= LENGTH({{0}}))"
    return f"CASE WHEN {fits} THEN {name}({{0}}, CAST(GREATEST({{1}}, 0) AS INT), {{2}}) END"


# Casts of texts: extract the part of the form that the kernels accept, then cast it with Spark.


# Spark's own fails at the part 0, and does not split a text into characters.
_PART = f"CAST(CASE WHEN {{2}} = 0 OR ABS({{2}}) > {_MOST} THEN 1 ELSE {{2}} END AS INT)"
_SPLIT_PART = (
    f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{2}} = 0 OR {{2}} > {_MOST} "
    f"OR {{2}} < -{_MOST} THEN '' WHEN {{1}} <> '' THEN SPLIT_PART({{0}}, {{1}}, {_PART}) "
    f"WHEN {{2}} + LENGTH({{0}}) < 0 THEN '' WHEN {{2}} < 0 THEN SUBSTRING({{0}}, {_PART} + LENGTH({{0}}) + 1, 1) "
    f"ELSE SUBSTRING({{0}}, {_PART}, 1) END"
)

_BARE = r"[ \t\n\x0B\f\r]*"


def _whole(pattern: str) -> str:
    return rf"\A{_BARE}{pattern}{_BARE}\z"


def _extracted(pattern: str, group: int = 1) -> str:
    """Return a group of a pattern that {0} matches, up to surrounding space, or an empty text, which no cast
    accepts."""
    return f"REGEXP_EXTRACT({{0}}, {braced(quoted(_whole(pattern)))}, {group})"


def _in_form(pattern: str) -> str:
    return _extracted(f"({pattern})")


def _to_integer(word: str) -> str:
    width = WIDTHS[word]
    whole = f"TRY_CAST({_in_form(INTEGER_FORM)} AS DECIMAL(38, 0))"
    return f"CAST({sql_between(whole, int(width.lower), int(width.upper))} AS BIGINT)"


_DOUBLE = f"TRY_CAST({_in_form(FLOAT_FORM)} AS DOUBLE)"


def _to_decimal(call: Call) -> str:
    digits, scale = decimal_digits(call)
    return f"CAST(TRY_CAST({_in_form(PLAIN_FORM)} AS DECIMAL({digits}, {scale})) AS DOUBLE)"


_BARE_TEXT = f"LOWER(TRIM(BOTH {braced(quoted(BLANKS))} FROM {{0}}))"
_TRUTH = (
    f"CASE WHEN {_BARE_TEXT} IN ({', '.join(map(quoted, TRUE_WORDS))}) THEN TRUE "
    f"WHEN {_BARE_TEXT} IN ({', '.join(map(quoted, FALSE_WORDS))}) THEN FALSE END"
)
_FORM = MOMENT_FORM.replace(r"\v", r"\x0B")  # Java's \v is more than one character
_MOMENT = (
    rf"(?=(?:{_FORM}){_BARE}\z)([0-9]{{1,4}})([-/ \\])([0-9]{{1,2}})\2([0-9]{{1,2}})"
    r"(?:[ \t\n\x0B\f\rT]+([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?"
    r"(?: ?(?:([+-])([0-9]{2}):?([0-9]{2})?|Z|(?i:UTC)))?)?"
)


def _group(number: int) -> str:
    """Return a part of a written time as a whole number, 0 if it is omitted; NULL if the text is no time."""
    text = _extracted(_MOMENT, number)
    if number < 4:
        return f"TRY_CAST({text} AS BIGINT)"
    if number == 8:
        text = f"RPAD(SUBSTRING({text}, 1, 6), 6, '0')"
    return f"COALESCE(TRY_CAST({text} AS BIGINT), 0)"


_TEXT_TO_DATE = made_date(_group(1), _group(3), _group(4))
_CLOCK = f"(({_group(5)} * 60 + {_group(6)}) * 60 + {_group(7)}) * {MICROSECONDS_A_SECOND} + {_group(8)}"
_SIGN = f"CASE WHEN {_extracted(_MOMENT, 9)} = '-' THEN -1 ELSE 1 END"
_EAST = f"{_SIGN} * ({_group(10)} * 60 + {_group(11)}) * {60 * MICROSECONDS_A_SECOND}"
_TEXT_TO_TIME = sql_between(
    f"(({_TEXT_TO_DATE}) * {MICROSECONDS_A_DAY} + {_CLOCK} - {_EAST})",
    int(MICROSECONDS.lower),
    int(MICROSECONDS.upper),
)

TEXTS: Mapping[str, Template] = {
    "upper": lambda _call: case_text("upper", "{0}"),
    "lower": lambda _call: case_text("lower", "{0}"),
    "trim": _trim("BOTH"),
    "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"),
    "length": "LENGTH({0})",
    "strpos": "INSTR({0}, {1})",
    "substring": _substring,
    "split_part": _SPLIT_PART,
    "left": _LEFT,
    "right": _RIGHT,
    "reverse": "REVERSE({0})",
    "text_join": _if_short("CAST(LENGTH({0}) AS BIGINT) + LENGTH({1})", "CONCAT({0}, {1})"),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _REPLACE,
    "repeat": _REPEAT,
    "lpad": _pad("LPAD"),
    "rpad": _pad("RPAD"),
    "starts_with": "STARTSWITH({0}, {1})",
    "ends_with": "ENDSWITH({0}, {1})",
    "contains": "CONTAINS({0}, {1})",
    "like": like,
    "ilike": lambda call: like(call, case_text("lower", "{0}")),
    **dict.fromkeys((each.name for each in REGULAR), no_regular_expression),
    **{f"text_to_{word.lower()}": _to_integer(word) for word in WIDTHS},
    "text_to_double": _DOUBLE,
    "text_to_float": float_text(_DOUBLE),
    "text_to_decimal": _to_decimal,
    "text_to_boolean": _TRUTH,
    "text_to_date": _TEXT_TO_DATE,
    "text_to_timestamp": _TEXT_TO_TIME,
}
