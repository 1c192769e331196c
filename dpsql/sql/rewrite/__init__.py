"""Rewrite pass: expand syntactic sugar into plain SQL, one rule per module."""
