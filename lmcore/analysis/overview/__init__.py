"""The whole way from a text to the next token, as one pass tells it."""
