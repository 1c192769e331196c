"""How far neighbouring databases can move exact results."""
