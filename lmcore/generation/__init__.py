"""Autoregressive generation: an iterator of steps, the tree of what was drawn, and a run that goes on by itself."""

from lmcore.generation.steps import GenerationStep, generate

__all__ = ["GenerationStep", "generate"]
