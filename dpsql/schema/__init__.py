"""What an owner declares of tables; no row is read."""
