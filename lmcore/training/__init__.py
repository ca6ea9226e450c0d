"""Training: an iterator of steps, a small trial on the small world, and a thread that trains while others go on."""

from lmcore.training.loop import TrainingSettings, TrainingStep, make_optimizer, next_token_loss, train

__all__ = ["TrainingSettings", "TrainingStep", "make_optimizer", "next_token_loss", "train"]
