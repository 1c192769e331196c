"""Noise intervals for the exact answer."""
