"""Sensitivity of exact results between neighbouring databases."""
