"""Sections of the logits page."""
