"""What is said of an answer."""
