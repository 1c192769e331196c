"""Designs: the integers that a query measures."""
