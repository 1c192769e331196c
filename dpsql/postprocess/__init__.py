"""SQL over what was released: DuckDB, locked, over shown rows and public tables, and nothing else within its reach.

Post-processing keeps differential privacy whatever it computes (Dwork, Roth 2014, proposition 2.1), as long as it is a
function of what was released. So this room imports nothing that reads a row or runs a private plan: what it works on is
handed to it as `Frame`s, and a text can name these alone.
"""
