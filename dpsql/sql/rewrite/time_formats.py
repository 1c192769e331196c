"""STRFTIME, TO_CHAR, FORMAT_DATE: a time as text, composed of existing functions.

Every code is a slice of a time's ISO text, or a padded part of the time. The time is first truncated to the finest unit
in the format: the text stays the same, and its public values are those of that unit, as with DATE_TRUNC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.scalars import RULES, Bind, ScalarBinder

_ISO = "YYYY-MM-DD HH:MI:SS"
"""The first characters of a timestamp's text."""
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""From coarsest to finest. A week is no part of a month, so both together are written day by day."""


@dataclass(frozen=True, slots=True)
class Code:
    """The output of one code: a slice of the ISO text (`start`, `length`), a part padded with zeros to `width` (0:
    unpadded), or the first `length` letters of a name; `case` is upper, lower or none."""

    unit: str
    start: int = 0
    length: int = 0
    part: str = ""
    width: int = 0
    case: str = ""
    cyclic: bool = False
    """True if it omits the year, so that every value recurs."""


def _iso(unit: str, word: str, *, cyclic: bool = True) -> Code:
    return Code(unit, start=_ISO.index(word) + 1, length=len(word), cyclic=cyclic)


def _part(unit: str, part: str, width: int = 0, *, cyclic: bool = True) -> Code:
    return Code(unit, part=part, width=width, cyclic=cyclic)


def _name(unit: str, part: str, length: int = 0, width: int = 0, case: str = "") -> Code:
    return Code(unit, part=part, length=length, width=width, case=case, cyclic=True)


_YEAR, _MONTH, _DAY = _iso("year", "YYYY", cyclic=False), _iso("month", "MM"), _iso("day", "DD")
_HOUR, _MINUTE, _SECOND = _iso("hour", "HH"), _iso("minute", "MI"), _iso("second", "SS")
_SHORT_YEAR = Code("year", start=3, length=2)
STRFTIME: Mapping[str, Code] = {
    "%Y": _YEAR, "%y": _SHORT_YEAR, "%m": _MONTH, "%d": _DAY, "%H": _HOUR, "%M": _MINUTE, "%S": _SECOND,
    "%b": _name("month", "monthname", 3), "%B": _name("month", "monthname"),
    "%a": _name("day", "dayname", 3), "%A": _name("day", "dayname"),
    "%j": _part("day", "dayofyear", 3), "%u": _part("day", "isodow"), "%w": _part("day", "dayofweek"),
    "%V": _part("week", "week", 2), "%G": _part("week", "isoyear", 4, cyclic=False),
    "%I": _part("hour", "half_day", 2), "%p": _name("hour", "half"),
    "%-m": _part("month", "month"), "%-d": _part("day", "day"), "%-H": _part("hour", "hour"),
    "%-I": _part("hour", "half_day"), "%-M": _part("minute", "minute"), "%-S": _part("second", "second"),
    "%-j": _part("day", "dayofyear"), "%Q": _part("quarter", "quarter"),
}  # fmt: skip
"""As in DuckDB and Python, plus BigQuery's %Q."""
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%h": "%b"}
TO_CHAR: Mapping[str, Code] = {
    "YYYY": _YEAR, "YY": _SHORT_YEAR, "MM": _MONTH, "DD": _DAY, "HH24": _HOUR, "MI": _MINUTE, "SS": _SECOND,
    "HH12": _part("hour", "half_day", 2), "HH": _part("hour", "half_day", 2), "Q": _part("quarter", "quarter"),
    "AM": _name("hour", "half"), "PM": _name("hour", "half"),
    "IYYY": _part("week", "isoyear", 4, cyclic=False), "IW": _part("week", "week", 2),
    "DDD": _part("day", "dayofyear", 3), "ID": _part("day", "isodow"),
    "FMMM": _part("month", "month"), "FMDD": _part("day", "day"), "FMHH24": _part("hour", "hour"),
}  # fmt: skip
"""As in PostgreSQL, in any case; FM omits padding."""
_NAMES: Mapping[str, Code] = {
    f"{fill}{word}": _name(unit, part, length, 0 if fill or length else 9, case)
    for unit, part, full, short in (("month", "monthname", "Month", "Mon"), ("day", "dayname", "Day", "Dy"))
    for words, length in (((full, full.upper(), full.lower()), 0), ((short, short.upper(), short.lower()), 3))
    for word, case in zip(words, ("", "upper", "lower"), strict=True)
    for fill in ("", "FM")
}
"""Names in the case of their code: Month, MONTH or month, padded to nine letters without FM."""

Piece = Code | str


def strftime_pieces(text: str) -> list[Piece] | None:
    """Return the codes and the texts between them, or None for an unknown code."""
    for short, long in _SHORT.items():
        text = text.replace(short, long) if "%%" not in text else text
    pieces: list[Piece] = []
    for match in re.finditer(r"%-?[A-Za-z]|%%|%|[^%]+", text, re.DOTALL):
        word = match[0]
        if word.startswith("%") and word != "%%" and word not in STRFTIME:
            return None
        pieces.append(STRFTIME.get(word, "%" if word == "%%" else word))
    return pieces


_TO_CHAR = sorted(TO_CHAR, key=len, reverse=True)
_NAMED = sorted(_NAMES, key=len, reverse=True)


def to_char_pieces(text: str) -> list[Piece] | None:
    """Return the same for PostgreSQL's codes; texts with letters are in double quotes."""
    pieces: list[Piece] = []
    place = 0
    while place < len(text):
        rest = text[place:]
        quoted = re.match(r'"([^"]*)"', rest)
        name = next((each for each in _NAMED if rest.startswith(each)), None)
        number = next((each for each in _TO_CHAR if rest.upper().startswith(each)), None)
        if quoted is not None:
            pieces.append(quoted[1])
            place += quoted.end()
        elif name is not None and len(name) >= len(number or ""):
            pieces.append(_NAMES[name])
            place += len(name)
        elif number is not None:
            pieces.append(TO_CHAR[number])
            place += len(number)
        elif rest[0].isalnum() or rest[0] in '"\\':
            return None
        else:
            pieces.append(rest[0])
            place += 1
    return pieces


class _Writer:
    """Writer of one time as text, piece by piece."""

    def __init__(self, binder: ScalarBinder, node: exp.Expr, time: Expr) -> None:
        self.binder = binder
        self.node = node
        self.time = time
        self.iso = self.apply(f"{time.type}_to_text", time)

    def apply(self, name: str, *args: Expr) -> Expr:
        return self.binder.apply(name, self.node, list(args))

    def part(self, name: str) -> Expr:
        known = f"{name}_of_date" if self.time.type is Type.DATE else name
        return self.apply(known, self.time)

    def characters(self, start: int, length: int) -> Expr:
        return self.apply("substring", self.iso, _number(start), _number(length))

    def written(self, code: Code) -> Expr:
        if not code.part:
            return self.characters(code.start, code.length)
        if code.part in ("monthname", "dayname"):
            name = self.part(code.part)
            name = self.apply("left", name, _number(code.length)) if code.length else name
            name = self.apply(code.case, name) if code.case else name
            return self.apply("rpad", name, _number(code.width), Literal(" ", Type.TEXT)) if code.width else name
        if code.part in ("half", "half_day"):
            return self._of_half_day(code)
        return self._padded(self.part(f"extract_{code.part}"), code.width)

    def _of_half_day(self, code: Code) -> Expr:
        """Return AM or PM, or the hour of a 12-hour clock."""
        hour = self.part("extract_hour")
        if code.part == "half":
            place = self.apply("add", self.apply("int_divide", hour, _number(12)), _number(1))
            letter = self.apply("substring", Literal("AP", Type.TEXT), place, _number(1))
            return self.apply("text_join", letter, Literal("M", Type.TEXT))
        before = self.apply("modulo", self.apply("add", hour, _number(11)), _number(12))
        return self._padded(self.apply("add", before, _number(1)), code.width)

    def _padded(self, number: Expr, width: int) -> Expr:
        text = self.apply("integer_to_text", number)
        return self.apply("lpad", text, _number(width), Literal("0", Type.TEXT)) if width else text


def _number(value: int) -> Literal:
    return Literal(value, Type.INTEGER)


def _finest(codes: list[Code]) -> str:
    units = {code.unit for code in codes}
    if "week" in units and units != {"week"}:
        units = units - {"week"} | {"day"}
    return max(units, key=_UNITS.index)


def formatted(binder: ScalarBinder, node: exp.Expr, time: Expr, pieces: list[Piece]) -> Expr:
    """Return the text of a date or timestamp. A single code that recurs every year is a part, with public values over
    any range; all else is a text of its finest unit."""
    codes = [each for each in pieces if isinstance(each, Code)]
    if not codes:
        raise SQLSyntaxError("a format of time without a code.", span=binder.span(node), hint=_HINT)
    cyclic = len(codes) == 1 and codes[0].cyclic
    if not cyclic:
        unit = _finest(codes)
        cut = f"trunc_{unit}"
        time = binder.apply("date_to_timestamp", node, [time]) if time.type is Type.DATE else time
        time = binder.apply(cut, node, [time])
    elif not codes[0].part:
        codes_as_parts = {"YYYY": "year", "MM": "month", "DD": "day", "HH": "hour", "MI": "minute", "SS": "second"}
        word = _ISO[codes[0].start - 1 : codes[0].start - 1 + codes[0].length]
        if word in codes_as_parts:
            part = _part(codes[0].unit, codes_as_parts[word], 2)
            pieces = [part if isinstance(each, Code) else each for each in pieces]
        else:
            time = binder.apply("date_to_timestamp", node, [time]) if time.type is Type.DATE else time
            time = binder.apply("trunc_year", node, [time])
    writer = _Writer(binder, node, time)
    texts = [each if isinstance(each, Literal) else writer.written(each) if isinstance(each, Code)
             else writer.characters(*each) for each in _merged(pieces)]  # fmt: skip
    return reduce(lambda left, right: binder.apply("text_join", node, [left, right]), texts)


def _merged(pieces: list[Piece]) -> list[Code | Literal | tuple[int, int]]:
    """Merge codes, with the separators between them, that are adjacent in the ISO text into one start and length."""
    merged: list[Code | Literal | tuple[int, int]] = []
    for piece in pieces:
        before = merged[-1] if merged else None
        if isinstance(piece, str) and isinstance(before, Literal):
            merged[-1] = Literal(f"{before.value}{piece}", Type.TEXT)
        elif isinstance(piece, str):
            merged.append(Literal(piece, Type.TEXT))
        elif piece.part:
            merged.append(piece)
        else:
            _append_characters(merged, piece)
    return merged


def _append_characters(merged: list[Code | Literal | tuple[int, int]], piece: Code) -> None:
    between = merged[-1] if merged and isinstance(merged[-1], Literal) else None
    first = merged[-2] if between is not None and len(merged) > 1 else None
    if isinstance(first, tuple) and between is not None:
        end = first[0] + first[1]
        if _ISO[end - 1 : piece.start - 1] == between.value and end + len(str(between.value)) == piece.start:
            merged[-2:] = [(first[0], piece.start + piece.length - first[0])]
            return
    merged.append((piece.start, piece.length))


_HINT = "Write STRFTIME(d, '%Y-%m-%d'), with codes of years, months, weeks, days, hours, minutes and seconds."
_Read = Callable[[str], "list[Piece] | None"]


def _written(binder: ScalarBinder, node: exp.Expr, arguments: list[exp.Expr], read: _Read, bind: Bind) -> Expr:
    """Bind a call with a time and a format, in either order."""
    texts = [each for each in arguments if isinstance(each, exp.Literal) and each.args.get("is_string")]
    if len(arguments) != 2 or not texts:
        raise UnsupportedSQL(
            "a format of time is a constant text, beside a date or a timestamp.", span=binder.span(node), hint=_HINT
        )
    form = texts[-1]
    time = bind(next(each for each in arguments if each is not form))
    if isinstance(time, Literal) and time.value is None:
        time = Literal(None, Type.TIMESTAMP)
    if not time.type.temporal:
        raise TypeMismatch(f"a date or a timestamp has a format, not {time.type}.", span=binder.span(node), hint=_HINT)
    pieces = read(str(form.this))
    if pieces is None:
        raise UnsupportedSQL(
            f"the format {str(form.this)[:40]!r} holds a code that is not known here.",
            span=binder.span(form) or binder.span(node),
            hint=_HINT,
        )
    return formatted(binder, node, time, pieces)


def _strftime(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    return _written(binder, node, [node.this, node.args["format"]], strftime_pieces, bind)


def _to_char(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    written = [each for each in (node.this, node.args.get("format")) if each is not None]
    return _written(binder, node, written, to_char_pieces, bind)


def format_date(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind BigQuery's FORMAT_DATE('%Y', d) and similar."""
    return _written(binder, node, list(node.expressions), strftime_pieces, bind)


FORMATS = frozenset({"FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME"})
RULES.update({exp.TimeToStr: _strftime, exp.ToChar: _to_char})
