"""Noise and estimates for the levels of grouping sets."""
