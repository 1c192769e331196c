"""The tables of a session and their declarations."""
