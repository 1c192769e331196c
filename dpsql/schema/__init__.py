"""An owner's declarations of tables; no row is read."""
