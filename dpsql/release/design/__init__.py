"""Which integers are asked for."""
