"""Sessions: from SQL text to a paid result."""
