"""Functions of texts, which are sequences of Unicode code points.

A function whose result can be longer than its arguments gives NULL for a result above MOST_CHARACTERS. In Python, it
decides so before building the text: no query can exhaust the memory.

A function's SQL names each argument once; otherwise, nested calls would grow exponentially. If arguments are needed
more often, they are taken from a list of one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

from dpsql.plan import work
from dpsql.plan.expressions import Fact, Function
from dpsql.plan.functions.cellwise import by_cell
from dpsql.plan.functions.letters import lower, upper
from dpsql.plan.functions.rules import TypeRule, always, any_nullable, boolean_fact
from dpsql.plan.work import LONGEST_PART, LONGEST_TEXT, SEARCHED, first_length
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INFINITY, Interval

MOST_CHARACTERS = LONGEST_TEXT
LONGEST = 2**32 - 1
"""Maximum number of characters: DuckDB stops at this many bytes, and the kernels here count no further."""
PLACES = Interval(-(2**32), LONGEST)
"""DuckDB's range of places and lengths in a text; other values are errors there and NULL here."""
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Characters removed by TRIM by default: Unicode's category Zs, which has no tab and no end of line."""


# Types and facts.


def typed(result: Type, *wanted: Type) -> TypeRule:
    """Return the result type for arguments of these types, in order; the last ones may be missing if the arity
    allows."""
    return always(result, lambda kinds: all(map(is_, kinds, wanted)))


def _texts(result: Type) -> TypeRule:
    return always(result, lambda kinds: all(kind is Type.TEXT for kind in kinds))


def _no_longer(facts: Sequence[Fact]) -> Fact:
    """Return the fact of a text that is never longer than the first argument."""
    return Fact(nullable=any_nullable(facts), most=facts[0].most)


def _unless_too_long(_facts: Sequence[Fact]) -> Fact:
    return Fact(nullable=True)


def _end_to_end(facts: Sequence[Fact]) -> Fact:
    known = [each.most for each in facts if each.most is not None]
    return Fact(nullable=True, most=sum(known) if len(known) == len(facts) else None)


def _padded(facts: Sequence[Fact]) -> Fact:
    """Return the fact of a text with the count as length; 0 if negative."""
    return Fact(nullable=True, most=max(0, int(facts[1].range.upper)) if facts[1].limited else None)


def _shorter(first: int | None, second: int | None) -> int | None:
    known = [each for each in (first, second) if each is not None]
    return min(known) if known else None


def _first_characters(facts: Sequence[Fact]) -> Fact:
    """Return the fact of the first count characters; all but the last -count if negative."""
    count = facts[1]
    cut = int(count.range.upper) if count.limited and count.range.lower >= 0 else None
    return replace(_places_fact(facts), most=_shorter(facts[0].most, cut))


def _last_characters(facts: Sequence[Fact]) -> Fact:
    return replace(_first_characters(facts), nullable=any_nullable(facts))


def _part(facts: Sequence[Fact]) -> Fact:
    """Return the fact of a substring of given length; backwards if negative."""
    cut = int(facts[2].range.magnitude) if len(facts) == 3 and facts[2].limited else None
    return replace(_places_fact(facts), most=_shorter(facts[0].most, cut))


def _count_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of a length or a place in the first argument. Without its maximum length, only 0 is
    meaningful."""
    if facts[0].most is not None:
        longest = max(1, facts[0].most)  # the empty text is at place 1 of an empty one
        return Fact(Interval(0, min(longest, LONGEST)), any_nullable(facts))
    return Fact(Interval(0, LONGEST), any_nullable(facts), meant=Interval(0, INFINITY))


def _places_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of a text that is NULL only for NULL, if all places are in DuckDB's range."""
    fit = all(each.range.intersect(PLACES) == each.range for each in facts[1:])
    return Fact(nullable=any_nullable(facts) or not fit)


# One cell at a time.


def _length(text: str) -> int:
    return min(len(text), LONGEST)


def _position(text: str, part: str) -> int:
    return min(text.find(part) + 1, LONGEST)


def _substring(text: str, start: int, length: int = LONGEST) -> str | None:
    """Return the substring from `start`, counted from 1 or, if negative, from the end; a negative length counts
    backwards."""
    if start not in PLACES or length not in PLACES:
        return None
    begin = start - 1 if start >= 0 else len(text) + start
    end = begin + length
    return text[max(0, min(begin, end)) : max(0, begin, end)]


def _left(text: str, count: int) -> str | None:
    return None if count > LONGEST else text[:count]


def _right(text: str, count: int) -> str:
    """Return the last `count` characters; if negative, all but the first -`count`."""
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


def _join(left: str, right: str) -> str | None:
    return None if len(left) + len(right) > MOST_CHARACTERS else left + right


def _concat(*texts: str | None) -> str | None:
    present = [each for each in texts if each is not None]
    return None if sum(map(len, present)) > MOST_CHARACTERS else "".join(present)


def _concat_with(separator: str | None, *texts: str | None) -> str | None:
    if separator is None:
        return None
    present = [each for each in texts if each is not None]
    length = sum(map(len, present)) + len(separator) * max(0, len(present) - 1)
    return None if length > MOST_CHARACTERS else separator.join(present)


def _replace(text: str, old: str, new: str) -> str | None:
    times = text.count(old) if old else 0
    if len(text) + times * (len(new) - len(old)) > MOST_CHARACTERS:
        return None
    return text.replace(old, new) if old else text


def _split_part(text: str, separator: str, number: int) -> str:
    """Return the part with this number, from the end if negative; empty if missing. An empty separator splits
    characters."""
    parts = text.split(separator) if separator else list(text)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if number and 0 <= place < len(parts) else ""


def _repeat(text: str, times: int) -> str | None:
    return None if len(text) * times > MOST_CHARACTERS else text * times


def _pad_left(text: str, count: int, pad: str) -> str | None:
    padding = _padding(text, count, pad)
    return None if padding is None else padding + text[: max(0, count)]


def _pad_right(text: str, count: int, pad: str) -> str | None:
    padding = _padding(text, count, pad)
    return None if padding is None else text[: max(0, count)] + padding


def _padding(text: str, count: int, pad: str) -> str | None:
    """Return the padding up to `count` characters; None if that is too many, or `pad` is empty."""
    missing = count - len(text)
    if count > MOST_CHARACTERS or (missing > 0 and not pad):
        return None
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 else ""


# DuckDB's SQL. A lambda's parameter shadows a column of the same name.


def once(body: str, **arguments: str) -> str:
    """Return `body`, in which s['x'] is the argument x, over arguments that are written only here."""
    cell = ", ".join(f"'{name}': {text}" for name, text in arguments.items())
    return f"list_transform([{{{{{cell}}}}}], lambda s: {body})[1]"


def _only(text: str, condition: str) -> str:
    """Return NULL unless the condition holds for the value `s`."""
    return f"list_filter([{text}], lambda s: {condition})[1]"


def _limited(text: str) -> str:
    """Limit a text that is no longer than its parts together: it may be built, and then dropped."""
    return _only(text, f"length(s) <= {MOST_CHARACTERS}")


def _place(argument: str) -> str:
    return _only(argument, f"s BETWEEN {PLACES.lower} AND {PLACES.upper}")


def _substring_sql(kinds: Sequence[Type], _result: Type) -> str:
    return f"substring({', '.join(['{0}', _place('{1}'), _place('{2}')][: len(kinds)])})"


def _pad_sql(name: str) -> str:
    return once(
        f"CASE WHEN s['n'] <= {MOST_CHARACTERS} AND (s['p'] <> '' OR s['n'] <= length(s['x']))"
        f" THEN {name}(s['x'], CAST(GREATEST(s['n'], 0) AS INTEGER), s['p']) END",
        x="{0}", n="{1}", p="{2}",
    )  # fmt: skip


_REPLACE_SQL = once(  # computes the result's length from the text without the replaced parts
    "CASE WHEN length(s['x']) + (length(s['x']) - length(replace(s['x'], s['old'], '')))"
    " // GREATEST(length(s['old']), 1) * (length(s['new']) - length(s['old']))"
    f" <= {MOST_CHARACTERS} THEN replace(s['x'], s['old'], s['new']) END",
    x="{0}", old="{1}", new="{2}",
)  # fmt: skip
_REPEAT_SQL = once(
    f"CASE WHEN length(s['x']) * CAST(s['n'] AS DOUBLE) <= {MOST_CHARACTERS} THEN repeat(s['x'], s['n']) END",
    x="{0}", n="{1}",
)  # fmt: skip
_REVERSE_SQL = "array_to_string(list_reverse(string_split({0}, '')), '')"  # DuckDB's REVERSE keeps graphemes whole

_TEXT = _texts(Type.TEXT)
_TEST = _texts(Type.BOOLEAN)
_TEXT_COUNT = typed(Type.TEXT, Type.TEXT, Type.INTEGER, Type.INTEGER)
_PAD = typed(Type.TEXT, Type.TEXT, Type.INTEGER, Type.TEXT)
_WANTS_COUNT = "a text and a whole number"

FUNCTIONS = (
    Function("upper", (1, 1), _TEXT, _no_longer, by_cell(upper), "UPPER({args})", "a text", "upper({0})",
             work=work.linear(110), length=first_length, syntax=("Upper(this)",)),
    Function("lower", (1, 1), _TEXT, _no_longer, by_cell(lower), "LOWER({args})", "a text", "lower({0})",
             work=work.linear(110), length=first_length, syntax=("Lower(this)",)),
    Function("trim", (1, 2), _TEXT, _no_longer, by_cell(lambda text, signs=SPACES: text.strip(signs)),
             "TRIM({args})", "texts", "trim({args})",
             work=work.trimmed, reads=SEARCHED, length=first_length),
    Function("ltrim", (1, 2), _TEXT, _no_longer, by_cell(lambda text, signs=SPACES: text.lstrip(signs)),
             "LTRIM({args})", "texts", "ltrim({args})",
             work=work.trimmed, reads=SEARCHED, length=first_length),
    Function("rtrim", (1, 2), _TEXT, _no_longer, by_cell(lambda text, signs=SPACES: text.rstrip(signs)),
             "RTRIM({args})", "texts", "rtrim({args})",
             work=work.trimmed, reads=SEARCHED, length=first_length),
    Function("length", (1, 1), _texts(Type.INTEGER), _count_fact, by_cell(_length), "LENGTH({args})", "a text",
             "length({0})",
             work=work.linear(1), syntax=("Length(this)",)),
    Function("strpos", (2, 2), _texts(Type.INTEGER), _count_fact, by_cell(_position), "STRPOS({args})", "texts",
             "strpos({args})",
             work=work.searched, reads=SEARCHED, syntax=("StrPosition(this, substr)",)),
    Function("substring", (2, 3), _TEXT_COUNT, _part, by_cell(_substring), "SUBSTRING({args})",
             "a text and whole numbers", _substring_sql,
             work=work.linear(2), length=first_length, syntax=("Substring(this, start, length)",)),
    Function("left", (2, 2), _TEXT_COUNT, _first_characters, by_cell(_left), "LEFT({args})", _WANTS_COUNT,
             f"left({{0}}, {_only('{1}', f's <= {LONGEST}')})",
             work=work.begun, length=first_length, syntax=("Left(this, expression)",)),
    Function("right", (2, 2), _TEXT_COUNT, _last_characters, by_cell(_right), "RIGHT({args})", _WANTS_COUNT,
             "right({args})",
             work=work.linear(2), length=first_length, syntax=("Right(this, expression)",)),
    Function("reverse", (1, 1), _TEXT, _no_longer, by_cell(lambda text: text[::-1]), "REVERSE({args})", "a text",
             _REVERSE_SQL,
             work=work.linear(110), length=first_length, syntax=("Reverse(this)",)),
    Function("text_join", (2, 2), _TEXT, _end_to_end, by_cell(_join), "{0} || {1}", "texts",
             _limited("{0} || {1}"),
             work=work.linear(3), length=work.joined_length, syntax=("DPipe(this, expression)",)),
    Function("concat", (1, None), _TEXT, _end_to_end, by_cell(_concat, strict=False), "CONCAT({args})", "texts",
             _limited("concat({args})"),
             work=work.linear(3), length=work.joined_length, syntax=("Concat(*expressions)",)),
    Function("concat_ws", (2, None), _TEXT, _unless_too_long, by_cell(_concat_with, strict=False),
             "CONCAT_WS({args})", "texts", _limited("concat_ws({args})"),
             work=work.linear(3), length=work.separated_length, syntax=("ConcatWs(*expressions)",)),
    Function("replace", (3, 3), _TEXT, _unless_too_long, by_cell(_replace), "REPLACE({args})", "texts", _REPLACE_SQL,
             work=work.replaced, reads=(LONGEST_TEXT, LONGEST_PART, LONGEST_TEXT), length=work.replaced_length,
             syntax=("Replace(this, expression, replacement)",)),
    Function("split_part", (3, 3), typed(Type.TEXT, Type.TEXT, Type.TEXT, Type.INTEGER), _no_longer,
             by_cell(_split_part), "SPLIT_PART({args})", "two texts and a whole number", "split_part({args})",
             work=work.split, length=first_length, reads=SEARCHED, syntax=("SplitPart(this, delimiter, part_index)",)),
    Function("repeat", (2, 2), _TEXT_COUNT, _unless_too_long, by_cell(_repeat), "REPEAT({args})", _WANTS_COUNT,
             _REPEAT_SQL,
             work=work.made(work.repeated_length), length=work.repeated_length, syntax=("Repeat(this, times)",)),
    Function("lpad", (3, 3), _PAD, _padded, by_cell(_pad_left), "LPAD({args})",
             "a text, a whole number and a text", _pad_sql("lpad"),
             work=work.made(work.padded_length), length=work.padded_length),
    Function("rpad", (3, 3), _PAD, _padded, by_cell(_pad_right), "RPAD({args})",
             "a text, a whole number and a text", _pad_sql("rpad"),
             work=work.made(work.padded_length), length=work.padded_length),
    Function("starts_with", (2, 2), _TEST, boolean_fact, by_cell(str.startswith), "STARTS_WITH({args})", "texts",
             "starts_with({args})",
             work=work.linear(1), syntax=("StartsWith(this, expression)", "PREFIX")),
    Function("ends_with", (2, 2), _TEST, boolean_fact, by_cell(str.endswith), "ENDS_WITH({args})", "texts",
             "ends_with({args})",
             work=work.linear(2), syntax=("EndsWith(this, expression)", "SUFFIX")),
    Function("contains", (2, 2), _TEST, boolean_fact, by_cell(str.__contains__), "CONTAINS({args})", "texts",
             "contains({args})",
             work=work.searched, reads=SEARCHED, syntax=("Contains(this, expression)",)),
)  # fmt: skip
