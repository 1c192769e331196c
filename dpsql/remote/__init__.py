"""Queries over a connection: a server that holds the data, and a client without data."""
