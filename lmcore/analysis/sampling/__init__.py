"""What the sampling page asks about a model."""
