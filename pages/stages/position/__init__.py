"""The views of the position page, one a file."""
