"""Queries of several releases with post-processing."""
