"""The views of the tokenization page."""
