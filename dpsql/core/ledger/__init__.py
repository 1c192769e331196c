"""The ledger of spent privacy budget."""
