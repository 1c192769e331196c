"""Noise distributions, the exponential mechanism, and exact samplers."""
