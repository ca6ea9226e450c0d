"""Where a logit comes from, and how well a model foresaw a text."""
