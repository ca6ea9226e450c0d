"""What attention and MLP did in each block, and what changes without them."""
