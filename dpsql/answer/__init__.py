"""Results and explanations: their values, texts and export formats."""
