"""Rows and totals of privacy units."""
