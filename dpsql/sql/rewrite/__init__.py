"""Rewrite pass: syntactic sugar to plain SQL, one rule per module."""
