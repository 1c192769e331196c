"""Joins as lookups of codes."""
