"""Output of answers and lists."""
