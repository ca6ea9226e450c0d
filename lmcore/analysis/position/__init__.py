"""What position encodings do, and how far beyond its trained length a model reads."""
