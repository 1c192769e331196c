"""The engine over pandas columns."""
