"""Bind pass: turn a resolved SELECT into a typed logical plan."""
