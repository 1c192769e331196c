"""The engine over DuckDB: an instance of its own, locked, that reads frames."""
