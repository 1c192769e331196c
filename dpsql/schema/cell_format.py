"""Declared formats of text cells: formats of dates, signs of numbers, and words for TRUE, FALSE and NULL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dpsql.errors import InvalidSchema
from dpsql.schema.column_declarations import EXAMPLES, briefly, items_of
from dpsql.schema.columns import CellFormat
from dpsql.schema.encodings import UTF_8, encoding_named, is_one_byte
from dpsql.schema.text_values import BLANKS, FALSE_WORDS, TRUE_WORDS

_TYPES: Mapping[str, tuple[str, ...]] = {
    "format": ("date", "timestamp"),
    "decimal": ("real", "integer"),
    "thousands": ("real", "integer"),
    "true": ("boolean",),
    "false": ("boolean",),
    "null": ("integer", "real", "boolean", "text", "date", "timestamp"),
    "encoding": ("integer", "real", "boolean", "text", "date", "timestamp"),
}
"""Column types to which each setting applies."""
_PARTS = {
    "Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day", "H": "hour", "I": "hour",
    "M": "minute", "S": "second", "f": "fraction", "p": "half",
}  # fmt: skip
_ORDER = ("year", "month", "day", "hour", "minute", "second", "fraction")
_DIRECTIVE = re.compile("%(.?)")
_MOST_FORMATS, _LONGEST_FORMAT, _MOST_WORDS, _LONGEST_WORD = 10, 100, 1_000, 200


def format_of(name: str, words: Mapping[str, object]) -> CellFormat:
    """Return the declared format of one column. Raises InvalidSchema."""
    read = {word: _READERS.get(word, _listed)(name, word, value) for word, value in words.items()}
    for each in read.get("format", ()):
        _check_format(name, each)
    made = CellFormat(**read)  # type: ignore[arg-type]
    _check(name, made)
    return made


def _check(name: str, form: CellFormat) -> None:
    """Raise InvalidSchema if settings contradict each other."""
    if form.thousands and form.thousands == (form.decimal or "."):
        other = "." if form.thousands == "," else ","
        raise InvalidSchema(
            f"{name}: {form.thousands!r} cannot part both thousands and the fraction.",
            hint=f'Write decimal = "{other}" and thousands = "{form.thousands}".',
        )
    for word, opposite in (("true", "false"), ("false", "true")):
        both = set(_truths(form, word)) & set(_truths(form, opposite)) if getattr(form, word) else set()
        if both:
            raise InvalidSchema(
                f"{name}: {min(both)!r} is a word for both true and false.",
                hint=f'Write {opposite}={{"{name}": {EXAMPLES[opposite]}}} too.',
            )
    both = (set(form.true) | set(form.false)) & set(form.null)
    if both:
        raise InvalidSchema(f"{name}: {min(both)!r} is a word for NULL and for a value.")


def _truths(form: CellFormat, word: str) -> tuple[str, ...]:
    """Return the words for "true" or "false"; by default the standard ones, in any case."""
    declared: tuple[str, ...] = getattr(form, word)
    standard = TRUE_WORDS if word == "true" else FALSE_WORDS
    return declared or tuple(case for each in standard for case in (each, each.upper(), each.capitalize()))


def check_type(name: str, form: CellFormat, kind: str) -> None:
    """Raise InvalidSchema for a setting that does not apply to the column type."""
    for word in form.words:
        if kind not in _TYPES[word]:
            wanted = " or ".join(f'"{each}"' for each in _TYPES[word])
            raise InvalidSchema(
                f"{name}: {word} is for columns of the type {wanted}, and {name} is {kind}.",
                hint=f'Declare the type too: types={{"{name}": "{_TYPES[word][0]}"}}.',
            )


def formats_of(words: Mapping[str, object]) -> dict[str, CellFormat]:
    """Return formats by column, from settings by column. Raises InvalidSchema."""
    by_column: dict[str, dict[str, object]] = {}
    for word, facts in words.items():
        for name, value in items_of(word, facts):
            by_column.setdefault(name, {})[word] = value
    return {name: format_of(name, said) for name, said in by_column.items()}


def _listed(name: str, word: str, value: object) -> tuple[str, ...]:
    """Return a text, or a list of different texts, as a tuple."""
    words = [value] if isinstance(value, str) else value
    most, longest = (_MOST_FORMATS, _LONGEST_FORMAT) if word == "format" else (_MOST_WORDS, _LONGEST_WORD)
    fits = isinstance(words, Sequence) and 0 < len(words) <= most
    if not isinstance(words, Sequence) or not fits or not all(_is_word(each, longest) for each in words):
        raise InvalidSchema(
            f"{name}: {word} is a text or a list of at most {most:,} texts of at most {longest} characters, got "
            f"{briefly(value)}.",
            hint=_hint(name, word),
        )
    bare = [str.__str__(each).strip(BLANKS) for each in words]
    if len(set(bare)) < len(bare):
        raise InvalidSchema(f"{name}: {word} lists a text twice.", hint="Space around a word does not count.")
    if "" in bare and word != "null":
        raise InvalidSchema(f"{name}: {word} lists an empty text.", hint=_hint(name, word))
    return tuple(bare)


def _is_word(value: object, longest: int) -> bool:
    if not isinstance(value, str) or len(value) > longest or "\0" in value:
        return False
    return not any("\ud800" <= sign <= "\udfff" for sign in value)


def _sign(name: str, word: str, value: object) -> str:
    if isinstance(value, str) and len(value) == 1 and not value.isalnum() and value not in "+-\0\n\r\t\v\f\ud800":
        return str.__str__(value)
    raise InvalidSchema(
        f"{name}: {word} is one character that is no letter, digit or sign of a number, got {briefly(value)}.",
        hint=_hint(name, word),
    )


def _encoding(name: str, word: str, value: object) -> str:
    encoding = encoding_named(value) if isinstance(value, str) else None
    if encoding is None or not (encoding == UTF_8 or is_one_byte(encoding)):
        raise InvalidSchema(
            f"{name}: {word} of a column names one in which a byte is a character, got {briefly(value)}.",
            hint=f'Write {word}={{"{name}": "latin-1"}}; of a whole file in another encoding, encoding="utf-16".',
        )
    return encoding


_READERS: Mapping[str, Callable[[str, str, object], str | tuple[str, ...]]] = {
    "decimal": _sign,
    "thousands": _sign,
    "encoding": _encoding,
}


def _hint(name: str, word: str) -> str:
    return f'Write {word}={{"{name}": {EXAMPLES[word]}}}.'


def _check_format(name: str, text: str) -> None:
    """Raise InvalidSchema unless a format has year, month and day once each, and a time of day without gaps."""

    def refusal(what: str) -> InvalidSchema:
        return InvalidSchema(
            f"{name}: format {text!r} {what}.",
            hint='Write "%d/%m/%Y" or "%m/%d/%Y %I:%M %p"; known are %Y %y %m %b %B %d %H %I %M %S %f %p and %%.',
        )

    directives = [each for each in _DIRECTIVE.findall(text) if each != "%"]
    unknown = next((each for each in directives if each not in _PARTS), None)
    if unknown is not None:
        raise refusal(f'has the unknown directive "%{unknown}"')
    parts = [_PARTS[each] for each in directives]
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise refusal(f"says the {twice} twice")
    present = [part for part in _ORDER if part in parts]
    missing = next((part for part in _ORDER[: max(3, len(present))] if part not in parts), None)
    if missing is not None:
        raise refusal(f"does not say the {missing}")
    if ("I" in directives) != ("p" in directives):
        raise refusal("has one of %I and %p, which belong together")
    rest = _DIRECTIVE.sub("", text)
    if re.search("[0-9]", rest) or not rest.isprintable():
        raise refusal("has a digit or an unprintable character between directives")
    if re.search("%f%|%[^f%]%f", text):
        raise refusal("has no sign beside %f")
