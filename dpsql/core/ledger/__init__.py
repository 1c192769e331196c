"""The ledger: what was spent, line after line."""
