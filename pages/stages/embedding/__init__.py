"""The views of the embedding page, one a file."""
