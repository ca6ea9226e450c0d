"""Sections of the blocks page."""
