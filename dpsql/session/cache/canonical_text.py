"""Values as bytes in one way only, told apart to the last bit: what keys that outlive a release are made of.

A kind of value has a written-out tag and a list of what identifies it, each with a word (`Form`); names of classes and
fields are not in it, so that renaming them changes no key. Two values that differ in anything listed have different
bytes: every piece is written with its kind and its length, and what a value is made of stands in it as digests of one
length, so that nothing can be read in two ways.
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
    """A value of a kind that has no form: whatever holds it has no key."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a kind of value is written: its tag, and pairs of a word and what is written under it.

    apart: fields that do not identify the value, such as a place in the text. later: words that came after keys were
    first made, with the value that they had before: left out where they have it, so that older keys stay as they are.
    """

    tag: str
    words: Mapping[str, Callable[[Any], object]]
    reads: frozenset[str]
    apart: frozenset[str] = frozenset()
    later: Mapping[str, object] | None = None
    enough: bool = False
    """The words identify the value, whatever fields it has."""
    name: Callable[[Any], str] | None = None
    """Of what is one of a list: it is written as its name alone, as members of enumerations are."""

    def unlisted(self, kind: type) -> list[str]:
        """Fields of a class that this form knows nothing of."""
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
    """A form that writes fields. names: a field, or "word=field" where it is written under another word."""
    pairs = [each.partition("=")[::2] for each in names]
    read = {word: field or word for word, field in pairs}
    words = {word: _reader(field) for word, field in read.items()}
    return Form(tag, words, frozenset(read.values()), frozenset(apart), later, enough)


def _reader(field: str) -> Callable[[Any], object]:
    return lambda value: getattr(value, field)


class Writer:
    """Digests of values, each object once: expressions may share parts.

    forms: of classes, looked up by the class itself, so that another class of the same name has no part in it; names:
    the tags of the members of enumerations; canonical: of classes, the value that is written for a value.
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
        self._held: list[object] = []  # so that no id is used again

    def digest(self, value: object) -> bytes:
        """32 bytes that tell the value from every other. Raises NoCanonicalForm."""
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
            self._held.append(value)  # parts of it are remembered by their ids
        if form.name is not None:
            return b"word " + form.name(value).encode()
        before = form.later or {}
        pairs = [(word, read(value)) for word, read in form.words.items()]
        pairs = [(word, each) for word, each in pairs if word not in before or each != before[word]]
        # A field that nobody has listed may well tell two questions apart: it is written under its own name.
        if type(value) not in self._unlisted:
            self._unlisted[type(value)] = form.unlisted(type(value))
        pairs += [(f"?{name}", getattr(value, name)) for name in self._unlisted[type(value)]]
        return b"node " + self.digest(form.tag) + b"".join(self.digest(w) + self.digest(each) for w, each in pairs)
