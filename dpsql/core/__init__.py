"""The privacy core: costs, sensitivity, mechanisms, measurements and the ledger."""
