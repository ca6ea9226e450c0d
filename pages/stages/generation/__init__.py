"""The parts of the generation page."""
