"""SQL over released values: a locked DuckDB over answers and public tables, without access to anything else.

Post-processing preserves differential privacy whatever it computes (Dwork, Roth 2014, proposition 2.1), if it is a
function of what was released. Therefore this package imports nothing that reads a row or runs a private plan: its
inputs are passed as `Frame`s, and SQL can name only these.
"""
