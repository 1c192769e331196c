"""HTTP server: the owner keeps the data, analysts send queries."""
