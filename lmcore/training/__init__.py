"""Training: an iterator of steps, a small trial on the small world, and a background thread."""

from lmcore.training.loop import TrainingSettings, TrainingStep, make_optimizer, next_token_loss, train

__all__ = ["TrainingSettings", "TrainingStep", "make_optimizer", "next_token_loss", "train"]
