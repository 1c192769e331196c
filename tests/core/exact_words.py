"""Samplers of which floats decide nothing: exact arithmetic does, word by word."""

from __future__ import annotations

import pytest

from dpsql.core.mechanisms import samplers


def decided_exactly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A margin so wide that floats decide nothing; the words that exact arithmetic decides, as they come."""
    words: list[int] = []

    class Counted(samplers.LazyUniform):
        def __init__(self, word: int) -> None:
            words.append(word)
            super().__init__(word)

    monkeypatch.setattr(samplers, "LazyUniform", Counted)
    monkeypatch.setattr(samplers, "_MARGIN", 4.0)
    return words
