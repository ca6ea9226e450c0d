"""What quantisation does to a model's numbers: to a block of weights, a matrix, the hidden states, the predictions."""
