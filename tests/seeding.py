"""Noise that is the same at each run, for tests that count how often something happens."""

import numpy as np
import pytest

from dpsql.core.mechanisms import samplers


def seed(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """All random words from now on are those of a generator that begins at this number."""
    words = np.random.default_rng(number)
    monkeypatch.setattr(samplers, "random_words", lambda n: words.integers(0, 2**64, n, dtype=np.uint64))
