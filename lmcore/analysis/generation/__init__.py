"""What the cache saves, and how alike several texts are."""
