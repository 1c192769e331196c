"""The logical plan: frozen values that print themselves."""
