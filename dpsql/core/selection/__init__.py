"""Partition selection: which unknown groups may be shown."""
