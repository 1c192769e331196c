"""Columns as blocks of typed values."""
