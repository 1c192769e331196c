"""Unique, bit-exact encoding of values as bytes, for keys that outlive a release.

Each kind of value has a fixed tag and a list of identifying fields, each with a word (`Form`). Names of classes and
fields are not encoded, so that renaming them changes no key. The encoding is injective on the listed fields: every
piece is written with its kind and its length, and components are written as digests of one length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from fractions import Fraction
from typing import Any

from dpsql.plan.digits import WholeFloat
from dpsql.schema.frozen import dataclass


class NoCanonicalForm(TypeError):
    """A value of a kind without a form: any value that contains it has no key."""


@dataclass(frozen=True, slots=True)
class Form:
    """Encoding of a kind of value: its tag, and pairs of a word and what is written under it.

    apart: fields that do not identify the value, such as a place in the text. later: words added after keys were first
    made, with their earlier implicit values. A word with that value is omitted, so that older keys stay valid.
    """

    tag: str
    words: Mapping[str, Callable[[Any], object]]
    reads: frozenset[str]
    apart: frozenset[str] = frozenset()
    later: Mapping[str, object] | None = None
    enough: bool = False
    """True if the words identify the value, whatever fields it has."""
    name: Callable[[Any], str] | None = None
    """Returns the name of a listed value, which is written as its name only, like members of enumerations."""

    def unlisted(self, kind: type) -> list[str]:
        """Return the fields of a class that this form does not mention."""
        return (
            []
            if self.enough
            else [each.name for each in fields(kind) if each.compare and each.name not in self.reads | self.apart]
        )


def form(
    tag: str,
    *names: str,
    apart: Iterable[str] = (),
    later: Mapping[str, object] | None = None,
    enough: bool = False,
) -> Form:
    """Return a form that writes fields. names: a field, or "word=field" if it is written under another word."""
    pairs = [each.partition("=")[::2] for each in names]
    read = {word: field or word for word, field in pairs}
    words = {word: _reader(field) for word, field in read.items()}
    return Form(tag, words, frozenset(read.values()), frozenset(apart), later, enough)


def _reader(field: str) -> Callable[[Any], object]:
    return lambda value: getattr(value, field)


class Writer:
    """Digests of values, each object once: expressions may share parts.

    forms: by class, not by its name, so that another class of the same name has no form; names: tags of the members of
    enumerations; canonical: by class, replaces a value before it is written.
    """

    def __init__(
        self,
        forms: Mapping[type, Form],
        names: Mapping[Enum, str],
        canonical: Mapping[type, Callable[[Any], Any]] | None = None,
    ) -> None:
        self._forms = forms
        self._names = names
        self._canonical = canonical or {}
        self._found: dict[int, bytes] = {}
        self._unlisted: dict[type, list[str]] = {}
        self._held: list[object] = []  # keeps ids from being reused

    def digest(self, value: object) -> bytes:
        """Return 32 bytes that identify the value. Raises NoCanonicalForm."""
        known = self._found.get(id(value))
        if known is None:
            known = hashlib.sha256(self._bytes(value)).digest()
            self._found[id(value)] = known
            self._held.append(value)
        return known

    def _bytes(self, value: Any) -> bytes:
        kind = type(value)
        if value is None:
            return b"none"
        if kind is bool:
            return b"true" if value else b"false"
        if kind is int:
            return f"integer {value}".encode()
        if kind in (float, WholeFloat):
            return f"real {value.hex()}".encode()
        if kind is Fraction:
            return f"fraction {value}".encode()
        if kind is str:
            return f"text {value}".encode("utf-8", "surrogatepass")
        if kind is tuple or kind is list:
            return b"list %d " % len(value) + b"".join(map(self.digest, value))
        if isinstance(value, Enum):
            if value not in self._names:
                raise NoCanonicalForm(f"{kind.__name__}.{value.name} has no tag")
            return b"word " + self._names[value].encode()
        return self._of_form(value)

    def _of_form(self, value: Any) -> bytes:
        form = self._forms.get(type(value))
        if form is None:
            raise NoCanonicalForm(f"{type(value).__name__} has no form")
        if type(value) in self._canonical:
            value = self._canonical[type(value)](value)
            self._held.append(value)  # its parts are remembered by their ids
        if form.name is not None:
            return b"word " + form.name(value).encode()
        before = form.later or {}
        pairs = [(word, read(value)) for word, read in form.words.items()]
        pairs = [(word, each) for word, each in pairs if word not in before or each != before[word]]
        # An unlisted field may distinguish two questions: write it under its own name.
        if type(value) not in self._unlisted:
            self._unlisted[type(value)] = form.unlisted(type(value))
        pairs += [(f"?{name}", getattr(value, name)) for name in self._unlisted[type(value)]]
        return b"node " + self.digest(form.tag) + b"".join(self.digest(w) + self.digest(each) for w, each in pairs)
