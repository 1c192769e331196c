"""Exact sums, counts and positions by group."""
