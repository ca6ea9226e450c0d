"""Figures of the position page."""
