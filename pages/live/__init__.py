"""Parts that run in the browser: one folder each, with its script, its style and a Python face."""
