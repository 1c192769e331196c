"""The groups that an answer shows."""
