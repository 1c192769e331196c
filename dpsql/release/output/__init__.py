"""Conversion of noisy integers to the columns of an answer."""
