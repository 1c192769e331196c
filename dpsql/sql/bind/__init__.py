"""Bind pass: a resolved SELECT to a typed logical plan."""
