"""The views of the training page, one a file."""
