"""Where a logit comes from, and how well a model predicted a text."""
