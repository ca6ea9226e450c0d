"""What one gradient step changes, and the two parts of the gradient of a tied matrix."""
