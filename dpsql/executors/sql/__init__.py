"""Exact plans as SQL statements."""
