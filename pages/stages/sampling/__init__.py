"""The parts of the sampling page, one file each."""
