"""Conversion of a plan to a noisy answer."""
