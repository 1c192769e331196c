"""Limits of numbers that several rooms share."""

from __future__ import annotations

LARGEST_LIMIT = 10**9
"""Limits of a unit's rows and groups go no further."""
SOME_ROWS = 0.5
"""Of so many rows by its noisy count a group is taken to have some."""
