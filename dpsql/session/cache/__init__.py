"""Cached answers, found by the canonical key of a query."""
