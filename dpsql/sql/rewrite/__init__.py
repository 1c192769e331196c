"""Rewrite pass: syntactic sugar as plain SQL, one rule a module."""
