"""Weights on disk: reading them with every name and shape checked, and writing them once each."""
