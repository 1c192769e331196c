"""Read texts under declared formats (`dpsql.schema.cell_format`).

`date_pattern` and `number_pattern` are patterns that Python's `re` and DuckDB's RE2 understand alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from dpsql.schema.calendar import MICROSECONDS_A_DAY, microsecond_number
from dpsql.schema.columns import CellFormat, Key, Type
from dpsql.schema.text_values import BLANKS, EXACT_READERS, FALSE_WORDS, READERS, TRUE_WORDS, unless_long

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"),
    "december",
)
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,3})?"
_PIECES = re.compile("%(.)|([^%]+)")
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"  # 0001 to 9999
_MOST_CENTURY = 68
"""Two-digit years up to it are in this century, larger ones in the last (POSIX)."""


def text_reader(kind: Type, form: CellFormat | None, *, exact: bool = False) -> Callable[[str], Key]:
    """Return the function that reads a column's texts. exact: for privacy unit keys."""
    standard = (EXACT_READERS if exact else READERS)[kind]
    if form is None:
        return standard
    read = _reader(kind, form, standard)
    nulls = frozenset(form.null)
    found = read if not nulls else lambda text: None if text.strip(BLANKS) in nulls else read(text)
    return found if kind is Type.TEXT else unless_long(found)


def _reader(kind: Type, form: CellFormat, standard: Callable[[str], Key]) -> Callable[[str], Key]:
    if form.format:
        return _date_reader(kind, form.format)
    if form.decimal or form.thousands:
        return _number_reader(kind, form, standard)
    if form.true or form.false:
        truths = {**dict.fromkeys(form.true, True), **dict.fromkeys(form.false, False)}
        rest = set(TRUE_WORDS if not form.true else ()) | set(FALSE_WORDS if not form.false else ())

        def read_truth(text: str) -> Key:
            bare = text.strip(BLANKS)
            return truths[bare] if bare in truths else standard(bare) if bare.lower() in rest else None

        return read_truth
    return standard


def number_pattern(form: CellFormat, kind: Type) -> str:
    """Return a pattern of numbers with the declared signs."""
    point, mark = re.escape(form.decimal or "."), re.escape(form.thousands)
    whole = rf"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+)" if mark else "[0-9]+"
    infinite = "|[+-]?(?i:inf|infinity)" if kind is Type.REAL else ""
    return rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+){_EXPONENT}{infinite}"


def _number_reader(kind: Type, form: CellFormat, standard: Callable[[str], Key]) -> Callable[[str], Key]:
    pattern = re.compile(number_pattern(form, kind))

    def read(text: str) -> Key:
        bare = text.strip(BLANKS)
        if pattern.fullmatch(bare) is None:
            return None
        return standard(bare.replace(form.thousands, "").replace(form.decimal or ".", "."))

    return read


def date_pattern(text: str, *, groups: bool = False) -> str:
    """Return a pattern of the texts that a format reads. groups: with each directive as a group of that name.

    A directive next to another has a fixed number of digits, so that texts are unambiguous.
    """
    pieces = _PIECES.findall(text)
    parts = []
    for place, (directive, literal) in enumerate(pieces):
        if literal or directive == "%":
            parts.append(re.escape(literal or "%"))
            continue
        beside = [pieces[each][0] for each in (place - 1, place + 1) if 0 <= each < len(pieces)]
        pattern = _directive_pattern(directive, fixed=any(each and each in "YymdHIMS" for each in beside))
        parts.append(f"(?P<{directive}>{pattern})" if groups else pattern)
    return "".join(parts)


def _directive_pattern(directive: str, *, fixed: bool) -> str:
    if directive == "p":
        return "[AaPp][Mm]"
    if directive in "bB":
        names = [name[:3] if directive == "b" else name for name in MONTHS]
        return f"(?:{'|'.join(''.join(f'[{sign.upper()}{sign}]' for sign in name) for name in names)})"
    return {"Y": _YEAR, "y": "[0-9]{2}", "f": "[0-9]{1,6}"}.get(directive, "[0-9]{2}" if fixed else "[0-9]{1,2}")


def _date_reader(kind: Type, formats: tuple[str, ...]) -> Callable[[str], Key]:
    patterns = [re.compile(date_pattern(each, groups=True)) for each in formats]

    def read(text: str) -> Key:
        bare = text.strip(BLANKS)
        matches = (pattern.fullmatch(bare) for pattern in patterns)
        moments = (_moment(match.groupdict()) for match in matches if match is not None)
        moment = next((each for each in moments if each is not None), None)
        return moment // MICROSECONDS_A_DAY if moment is not None and kind is Type.DATE else moment

    return read


def _moment(parts: dict[str, str]) -> int | None:
    """Return microseconds since 1970 from directives; None for a day or a time that does not exist."""
    hour = int(parts.get("H") or parts.get("I") or 0)
    if "I" in parts:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (parts["p"].lower() == "pm")
    fraction = int((parts.get("f") or "0").ljust(6, "0"))
    try:
        day = datetime(_year(parts), _month(parts), int(parts["d"]))  # a wall clock has no zone here
        moment = day.replace(hour=hour, minute=int(parts.get("M") or 0), second=int(parts.get("S") or 0))
    except ValueError:
        return None
    return microsecond_number(moment) + fraction


def _year(parts: dict[str, str]) -> int:
    if "Y" in parts:
        return int(parts["Y"])
    year = int(parts["y"])
    return year + (2000 if year <= _MOST_CENTURY else 1900)


def _month(parts: dict[str, str]) -> int:
    if "m" in parts:
        return int(parts["m"])
    name = (parts.get("b") or parts["B"]).lower()
    return next(place for place, month in enumerate(MONTHS, start=1) if month.startswith(name))
