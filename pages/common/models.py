"""The models in memory: one copy for all sessions, loaded in the background, the least recently used given up first."""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from lmcore import LanguageModel
from lmcore.checkpoints.weights import own_tensors
from lmcore.loading import Doing, LoadingCancelled, Progress
from lmcore.worker import Tell, Worker

Load = Callable[[str, Progress], LanguageModel]

_NOBODY_WAITS_AFTER = 10.0  # seconds without anyone asking: a page that reruns asks again sooner


class Loading:
    """A model on its way into memory, for all who wait for it.

    Args:
        load: makes the model, telling its progress; called in a thread.
        name: the model's.

    Attributes:
        what: what is being done; None before the first word of it.
        share: how much of it is done, in [0, 1].
    """

    def __init__(self, load: Callable[[Progress], LanguageModel], name: str) -> None:
        self.what: Doing | None = None
        self.share = 0.0
        self._wanted_until = time.monotonic() + _NOBODY_WAITS_AFTER
        self._worker: Worker[None] = Worker(functools.partial(self._run, load), name=f"loading {name}", rest=0.0)

    @property
    def model(self) -> LanguageModel | None:
        """The model, when it is there."""
        return self._worker.result

    @property
    def error(self) -> BaseException | None:
        """Why it ended without one."""
        return self._worker.error

    def wait(self, seconds: float) -> bool:
        """Wait for it to end; return whether it has. Who stops asking no longer wants it."""
        self._wanted_until = time.monotonic() + _NOBODY_WAITS_AFTER
        return self._worker.join(seconds)

    def cancel(self) -> None:
        """Want it no more: it ends soon, unless another session goes on asking for it."""
        self._wanted_until = time.monotonic() + 1.0

    def _run(self, load: Callable[[Progress], LanguageModel], tell: Tell[None]) -> LanguageModel:
        def said(what: Doing, share: float) -> None:
            self.what, self.share = what, share
            if time.monotonic() > self._wanted_until:
                raise LoadingCancelled
            tell(None)

        return load(said)


class Models:
    """The models in memory by name.

    Args:
        load: makes a model, telling its progress.
        budget: bytes of weights that are kept. A model larger than that is kept alone.
        loaded: called after each loading.
    """

    def __init__(self, load: Load, budget: int, loaded: Callable[[], object] = lambda: None) -> None:
        self._load, self._budget, self._loaded = load, budget, loaded
        self._lock = threading.Lock()
        self._models: OrderedDict[str, LanguageModel] = OrderedDict()
        self._loadings: dict[str, Loading] = {}

    def get(self, name: str) -> LanguageModel | None:
        """Return a model that is in memory, or None."""
        with self._lock:
            if name in self._models:
                self._models.move_to_end(name)
            return self._models.get(name)

    def names(self) -> list[str]:
        """Return what is in memory, the least recently used first."""
        with self._lock:
            return list(self._models)

    def start(self, name: str) -> Loading:
        """Begin to load a model in the background, or join its loading."""
        with self._lock:
            if name not in self._loadings:
                self._loadings[name] = Loading(functools.partial(self._bring, name), name)
            return self._loadings[name]

    def _bring(self, name: str, said: Progress) -> LanguageModel:
        try:
            model = self.get(name)
            if model is None:
                model = self._load(name, said)
                self._keep(name, model)
                self._loaded()
            return model
        finally:
            with self._lock:
                del self._loadings[name]

    def _keep(self, name: str, lm: LanguageModel) -> None:
        with self._lock:
            self._models[name] = lm
            while len(self._models) > 1 and sum(map(n_bytes, self._models.values())) > self._budget:
                self._models.popitem(last=False)


def n_bytes(lm: LanguageModel) -> int:
    """Return the bytes of a model's weights, a tied matrix once."""
    return sum(tensor.nbytes for tensor in own_tensors(lm.model).values())
