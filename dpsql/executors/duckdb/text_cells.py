"""Texts in files as values of declared types, in DuckDB's SQL: equivalent to `dpsql.schema.formatted_values`.

No text makes an expression fail. Declarations of a column appear in the SQL as literals.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.rules import sql_between
from dpsql.schema.columns import CellFormat, Type
from dpsql.schema.formatted_values import date_pattern, number_pattern
from dpsql.schema.intervals import INT64, Interval
from dpsql.schema.text_values import EXACT_INTEGERS, FALSE_WORDS, INTEGER_FORM, MOST_READ, TRUE_WORDS

_BLANKS = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_CASTS = {
    Type.REAL: "text_to_double",
    Type.BOOLEAN: "text_to_boolean",
    Type.DATE: "text_to_date",
    Type.TIMESTAMP: "text_to_timestamp",
}


def read_text(text: str, kind: Type, form: CellFormat | None, *, clips: bool = False) -> str:
    """Return the value of a text, or NULL. clips: see `cells.cell_text`."""
    if kind is Type.TEXT and form is None:
        return text
    short = text if kind is Type.TEXT else _unless_long(text)
    if kind is Type.INTEGER and clips and not (form is not None and (form.true or form.false)):
        return _without_nulls(short, nearest(_whole(short, form, EXACT_INTEGERS)), form)
    return _without_nulls(short, _read(short, kind, form), form)


def exact_integer(text: str, form: CellFormat | None) -> str:
    """Return a text as a whole number of any size, as the text of its digits: for privacy unit keys."""
    short = _unless_long(text)
    return _without_nulls(short, f"CAST({_whole(short, form, EXACT_INTEGERS)} AS VARCHAR)", form)


def _unless_long(text: str) -> str:
    return f"CASE WHEN LENGTH({text}) <= {MOST_READ} THEN {text} END"


def _whole(text: str, form: CellFormat | None, limits: Interval) -> str:
    found = f"TRY_CAST({_matching(_standard_number(text, Type.INTEGER, form), INTEGER_FORM)} AS HUGEINT)"
    return sql_between(found, int(limits.lower), int(limits.upper))


def nearest(number: str) -> str:
    """Return the 64-bit integer nearest to a whole number of another type."""
    last = INT64.upper
    return (
        f"CASE WHEN {number} >= {last} THEN {last} WHEN {number} <= {INT64.lower} THEN {INT64.lower} "
        f"ELSE TRY_CAST({number} AS BIGINT) END"
    )


def _without_nulls(text: str, read: str, form: CellFormat | None) -> str:
    if form is None or not form.null:
        return read
    return f"CASE WHEN {_bare(text)} NOT IN ({_listed(form.null)}) THEN {read} END"


def _read(text: str, kind: Type, form: CellFormat | None) -> str:
    if kind is Type.TEXT:
        return text
    if form is not None and form.format:
        return _read_date(text, kind, form.format)
    if form is not None and (form.true or form.false):
        return _read_truth(text, form)
    if kind is Type.INTEGER:
        return f"TRY_CAST({_whole(text, form, INT64)} AS BIGINT)"
    return _cast(_standard_number(text, kind, form), kind)


def _cast(text: str, kind: Type) -> str:
    sql = FUNCTIONS[_CASTS[kind]].sql
    assert isinstance(sql, str)  # casts of texts have it
    return sql.format(text)


def _standard_number(text: str, kind: Type, form: CellFormat | None) -> str:
    """Rewrite a number with declared signs in standard form."""
    if form is None or not (form.decimal or form.thousands):
        return text
    found = _matching(text, number_pattern(form, kind))
    if form.thousands:
        found = f"replace({found}, {_quoted(form.thousands)}, '')"
    return f"replace({found}, {_quoted(form.decimal)}, '.')" if form.decimal else found


def _read_date(text: str, kind: Type, formats: tuple[str, ...]) -> str:
    moments = [f"TRY_STRPTIME({_matching(text, date_pattern(each))}, {_quoted(each)})" for each in formats]
    moment = f"COALESCE({', '.join(moments)})" if len(moments) > 1 else moments[0]
    return f"CAST({moment} AS DATE)" if kind is Type.DATE else moment


def _read_truth(text: str, form: CellFormat) -> str:
    """Read a boolean: declared words exactly, standard ones in any case."""
    cases = []
    for declared, standard, value in ((form.true, TRUE_WORDS, "TRUE"), (form.false, FALSE_WORDS, "FALSE")):
        asked = (
            f"{_bare(text)} IN ({_listed(declared)})" if declared else f"{_plain_case(text)} IN ({_listed(standard)})"
        )
        cases.append(f"WHEN {asked} THEN {value}")
    first, second = cases if form.true else reversed(cases)  # declared words take precedence over standard ones
    return f"CASE {first} {second} END"


def _matching(text: str, pattern: str) -> str:
    """Return the part of a text that a pattern matches, without surrounding space, or an empty text."""
    whole = rf"^[ \t\n\v\f\r]*({pattern})[ \t\n\v\f\r]*$"
    return f"regexp_extract({text}, {_quoted(whole)}, 1)"


def _bare(text: str) -> str:
    return f"trim({text}, {_BLANKS})"


def _plain_case(text: str) -> str:
    return f"lower({_bare(text)})"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(_quoted, words))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
