"""Figures of the generation page."""
