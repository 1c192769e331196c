"""Window functions inside a privacy unit."""
