"""Limits of numbers shared by several packages."""

from __future__ import annotations

LARGEST_LIMIT = 10**9
"""Maximum of a unit's limits of rows and groups."""
SOME_ROWS = 0.5
"""A group with at least this noisy count is treated as nonempty."""
