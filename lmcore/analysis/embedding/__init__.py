"""Rows of the embedding: likeness, maps, history, and where the small world uses a token."""
