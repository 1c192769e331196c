"""The server: the owner keeps the data, analysts ask over HTTP."""
