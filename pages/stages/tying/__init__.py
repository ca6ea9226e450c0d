"""The views of the page on weight tying and parameters, one a file."""
