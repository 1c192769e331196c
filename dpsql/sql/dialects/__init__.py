"""Texts of other dialects: read by sqlglot's reader of the dialect, checked, and written in the language.

    names      which dialects there are, and in what their words differ from DuckDB's
    kinds      which expressions are known to be whole numbers, numbers or times
    forms      the kinds of nodes that mean the same everywhere, or for which there is a rule
    rules      nodes whose meaning depends on the dialect: written so that DuckDB's words mean it, or refused
    places     from a place in the written text to one in the user's
    translate  all of it, from text to text

sqlglot writes most of a dialect in DuckDB's words. What it writes with another meaning (whole numbers divided, casts
that cut, weeks that begin on Sunday) has a rule here, and a node that neither list knows is refused.
"""
