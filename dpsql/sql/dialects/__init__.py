"""Texts of other dialects: parsed by sqlglot, checked, and written in dpsql's language.

    names      available dialects, and how their words differ from DuckDB's
    kinds      expressions known to be integers, numbers or times
    forms      nodes that mean the same everywhere, or that have a rule
    rules      nodes whose meaning depends on the dialect: rewritten with DuckDB's meaning, or refused
    places     from a position in the translated text to the original
    translate  the whole translation, from text to text

sqlglot translates most of a dialect to DuckDB. Translations that change the meaning (integer division, truncating
casts, weeks that begin on Sunday) have rules here, and nodes in neither list are refused.
"""
