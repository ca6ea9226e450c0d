"""Pictures of two runs side by side."""
