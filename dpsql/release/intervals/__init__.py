"""Where the exact answer lies."""
