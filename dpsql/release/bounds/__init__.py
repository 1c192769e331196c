"""Clip bounds that a query chooses privately."""
