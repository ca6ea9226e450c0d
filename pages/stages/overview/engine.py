"""The way in front of a model that runs elsewhere: what its server tells, and plainly what it does not."""

from __future__ import annotations

from lmcore.engines.engine import Engine
from pages.common import engines


def show(engine: Engine) -> None:
    """Say what is missing."""
    engines.needs_a_local_model(engine.name)
