"""The engine over DuckDB: a locked instance of its own that reads frames."""
