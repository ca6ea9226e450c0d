"""The models in memory: one copy for all sessions, loaded in the background, the least recently used given up first."""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from lmcore import LanguageModel, threads
from lmcore.checkpoints.weights import own_tensors
from lmcore.loading import LoadingCancelled, Progress

Load = Callable[[str, Progress], LanguageModel]

_NOBODY_WAITS_AFTER = 10.0  # seconds without anyone asking: a page that reruns asks again sooner


class Loading:
    """A model on its way into memory, for all who wait for it.

    Attributes:
        what: what is being done.
        share: how much of it is done, in [0, 1].
        model: the model, when it is there.
        error: why it ended without one.
    """

    def __init__(self) -> None:
        self.what, self.share = "", 0.0
        self.model: LanguageModel | None = None
        self.error: BaseException | None = None
        self._ended = threading.Event()
        self._wanted_until = time.monotonic() + _NOBODY_WAITS_AFTER

    def wait(self, seconds: float) -> bool:
        """Wait for it to end; return whether it has. Who stops asking no longer wants it."""
        self._wanted_until = time.monotonic() + _NOBODY_WAITS_AFTER
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Want it no more: it ends soon, unless another session goes on asking for it."""
        self._wanted_until = time.monotonic() + 1.0

    def said(self, what: str, share: float) -> None:
        """Take note of the progress; the loader calls it.

        Raises:
            LoadingCancelled: when nobody waits any more.
        """
        self.what, self.share = what, share
        if time.monotonic() > self._wanted_until:
            raise LoadingCancelled

    def end(self, model: LanguageModel | None, error: BaseException | None) -> None:
        """Wake those who wait."""
        self.model, self.error = model, error
        self._ended.set()


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
                self._loadings[name] = loading = Loading()
                threads.start(functools.partial(self._run, name, loading), f"loading {name}", loading.cancel)
            return self._loadings[name]

    def _run(self, name: str, loading: Loading) -> None:
        model: LanguageModel | None = self.get(name)
        error: BaseException | None = None
        try:
            if model is None:
                model = self._load(name, loading.said)
                self._keep(name, model)
                self._loaded()
        except BaseException as raised:  # whatever it is, those who wait are told
            error = raised
        with self._lock:
            del self._loadings[name]
        loading.end(model, error)

    def _keep(self, name: str, lm: LanguageModel) -> None:
        with self._lock:
            self._models[name] = lm
            while len(self._models) > 1 and sum(map(n_bytes, self._models.values())) > self._budget:
                self._models.popitem(last=False)


def n_bytes(lm: LanguageModel) -> int:
    """Return the bytes of a model's weights, a tied matrix once."""
    return sum(tensor.nbytes for tensor in own_tensors(lm.model).values())
