"""The Jupyter magics."""
