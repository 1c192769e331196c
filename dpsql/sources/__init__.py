"""Frames and files as columns."""
