"""Headers of text files: column names, or the problem and the settings that solve it.

The result depends only on the header and the owner's settings, not on rows. Messages show the settings that solve a
problem, and `dpsql init` writes them into the schema file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.schema.encodings import UTF_8
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TextFormat, words_in_python, words_in_shell, words_in_toml
from dpsql.sources.text_records import cell_of, record_at
from dpsql.sources.transcoding import MARKS

_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
"""The delimiters of most files."""
_EXCEL = re.compile(rb'"?sep=(.?)"?[\s;,]*', re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class HeaderProblem:
    """A problem of a header, with {file} for the file's name. form: the format that solves it, None if no setting does;
    advice: a further hint."""

    message: str
    form: TextFormat | None = None
    advice: str = ""

    def refusal(self, path: Path, form: TextFormat) -> InvalidSchema:
        """Return the error, with the settings that solve it in Python, TOML and shell syntax."""
        words = changed_words(form, self.form) if self.form is not None else {}
        message = self.message.replace("{file}", path.name)
        if not words:
            return InvalidSchema(message, hint=self.advice)
        toml = words_in_toml(words)
        return InvalidSchema(
            message,
            hint="\n".join(filter(None, [f'Write dpsql.Table("{path.name}", {words_in_python(words)}).', self.advice])),
            about={
                "hint elsewhere": "\n".join(
                    filter(None, [f"Pass {words_in_shell(words)}", f"In an owner's file write:\n{toml}", self.advice])
                ),
                "hint in a file": "\n".join(filter(None, [f"Write:\n{toml}", self.advice])),
                "words": json.dumps(words),
            },
        )


def changed_words(old: TextFormat, new: TextFormat) -> dict[str, Any]:
    """Return the settings of the new format that differ from the old one."""
    return {word: value for word, value in new.words.items() if old.words.get(word) != value}


def header_line(front: bytes, form: TextFormat, signs: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return the header in the front of a file without its line end, and the rest. With `multiline`, quoted names may
    contain line ends."""
    end = record_at(front, 0, *signs)[1] if form.multiline else front.find(b"\n")
    line, rest = (front, b"") if end < 0 else (front[:end], front[end + 1 :])
    line = line.removesuffix(b"\r")
    return line.replace(b"\r\n", b"\n") if form.multiline else line, rest


def problem_of_header(
    line: bytes, fields: Sequence[bytes] | None, form: TextFormat, signs: tuple[bytes, bytes], *, last: bool
) -> HeaderProblem | None:
    """Return the problem of a header, None if it names the columns. fields: of the line, None for malformed quotes;
    signs: delimiter and quote; last: whether no line follows."""
    found = _problem_of_bytes(line, form, last=last) or _problem_of_signs(line, fields, form, signs)
    lines = 1 + line.count(b"\n")
    return found or problem_of_names([cell_of(field) or "" for field in fields or ()], form, lines)


def _problem_of_bytes(line: bytes, form: TextFormat, *, last: bool) -> HeaderProblem | None:
    """Return the problem of the line before it is split into fields."""
    if not line.strip() and last:
        skipped = f" after the {form.skip} that are skipped" if form.skip else ""
        return HeaderProblem(f"{{file}} is empty{skipped}: a CSV file begins with the names of its columns.")
    if not line.strip():
        return HeaderProblem("{file}: the line of its header is empty.", replace(form, skip=form.skip + 1))
    marked = next((name for name, mark in MARKS.items() if line.startswith(mark)), None)
    if marked is not None and form.encoding == UTF_8:
        width = marked[:6]
        mended = replace(form, encoding=width)
        return HeaderProblem(f"{{file}} has bytes 0x00: its first line, the header, is in {width.upper()}.", mended)
    if b"\0" in line:
        return _problem_of_zeros(line, form)
    separator = _EXCEL.fullmatch(line)
    if separator is not None:
        return _problem_of_separator(separator[1].decode("latin-1"), form)
    if cell_of(line) is None:
        message = f"{{file}} is not text in {form.encoding.upper()}: its first line, the header."
        if form.encoding != UTF_8:
            return HeaderProblem(message)
        other = "cp1252 is that of Windows in Western Europe: name another where the file has another."
        return HeaderProblem(message, replace(form, encoding="cp1252"), other)
    if b"\r" in line.replace(b"\r\n", b"\n"):
        return HeaderProblem(
            "{file}: a byte 0x0D stands inside its first line: only 0x0A, or 0x0D with 0x0A, ends a line.",
            advice="A file with 0x0D alone is converted first: tr '\\r' '\\n' < OLD.csv > NEW.csv",
        )
    return None


def _problem_of_zeros(line: bytes, form: TextFormat) -> HeaderProblem:
    """Return the problem of a header with bytes 0x00: if every second byte is one, it may be UTF-16."""
    if form.encoding == UTF_8 and line.count(b"\0") * 2 >= len(line) - 1:
        little = line[1::2].count(b"\0") > line[::2].count(b"\0")
        order = "" if form.skip else "-le" if little else "-be"  # after skipped lines the halves of a unit are unknown
        mended = replace(form, encoding=f"utf-16{order}")
        return HeaderProblem("{file} has bytes 0x00: its first line, the header, may be UTF-16.", mended)
    return HeaderProblem("{file} has bytes 0x00: its first line, the header.")


def _problem_of_separator(sign: str, form: TextFormat) -> HeaderProblem:
    """Return the problem of a line for Excel that names the delimiter."""
    mended = replace(form, skip=form.skip + 1)
    if sign in _SIGNS and sign != form.quote:
        mended = replace(mended, delimiter=sign)
    return HeaderProblem("{file}: its first line says what stands between columns (sep=), and is no header.", mended)


def _problem_of_signs(
    line: bytes, fields: Sequence[bytes] | None, form: TextFormat, signs: tuple[bytes, bytes]
) -> HeaderProblem | None:
    """Return the problem of a header with another delimiter, or with malformed quotes."""
    delimiter, quote = signs
    if form.delimiter is None and (fields is None or len(fields) == 1):
        others = {
            sign: _count(line, sign, quote) for sign in _SIGNS if sign not in (delimiter.decode(), quote.decode())
        }
        sign = max(others, key=lambda each: others[each])
        if others[sign] > 1:
            usual = _SIGNS[delimiter.decode()]
            message = f"{{file}}: the first line has no {usual} between names, and has {_SIGNS[sign]}s."
            return HeaderProblem(message, replace(form, delimiter=sign))
    if fields is None:
        advice = 'Names stand in quotes, or without any: "first name",age'
        if not form.multiline:
            advice += "\nWhere a name in quotes holds a line end, multiline = true reads it."
        return HeaderProblem("{file}: a quote in its first line, the header, is not closed.", advice=advice)
    return None


def _count(line: bytes, sign: str, quote: bytes) -> int:
    """Return the number of fields of a line with a delimiter; 0 for malformed quotes."""
    fields, _ = record_at(line, 0, sign.encode("ascii"), quote)
    return len(fields or ())


def problem_of_names(names: Sequence[str], form: TextFormat | None, lines: int = 1) -> HeaderProblem | None:
    """Return the problem of unnamed or duplicate columns. form: the file's, if the names are from its header, which has
    this many lines."""
    folded = Counter(name.casefold() for name in names)
    twice = next((name for name, times in folded.items() if times > 1 and name), None)
    if all(names) and twice is None:
        return None
    unnamed = [place for place, name in enumerate(names, start=1) if not name]
    wrong = f"column {unnamed[0]} has no name" if unnamed else f'two columns are named "{twice}"'
    if form is None:
        return HeaderProblem(f"{{file}}: {wrong}.", advice="Rename it in header." if unnamed else "Rename one of them.")
    below = replace(form, skip=form.skip + lines)
    if len(unnamed) == len(names):
        return HeaderProblem("{file}: no column has a name.", below)
    advice = f"Where the names stand further down, say how many lines are above them: skip = {below.skip}."
    if unnamed == [len(names)]:
        advice = f"A delimiter at the end of the first line makes a last column.\n{advice}"
    return HeaderProblem(f"{{file}}: {wrong}.", replace(below, header=tuple(_distinct(names))), advice)


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """Yield distinct names: made up for unnamed columns, and numbered for duplicates."""
    written = {name.casefold() for name in names}
    taken: set[str] = set()
    for place, name in enumerate(names, start=1):
        base = name or f"column{place}"
        free, number = base, 1
        while free.casefold() in taken or (free != name and free.casefold() in written):
            number += 1
            free = f"{base}_{number}"
        taken.add(free.casefold())
        yield free
