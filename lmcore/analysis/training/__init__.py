"""What one gradient step moves, and the gradient of a tied matrix in its two parts."""
