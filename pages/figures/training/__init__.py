"""Figures of the training page."""
