"""Partition selection."""
