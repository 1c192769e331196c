"""Limits of whole numbers that several rooms share."""

from __future__ import annotations

LARGEST_LIMIT = 10**9
"""Limits of a unit's rows and groups go no further."""
