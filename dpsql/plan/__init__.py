"""The logical plan: frozen, printable values."""
