"""Data sources: frames and files as columns."""
