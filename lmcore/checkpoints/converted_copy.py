"""A converted copy of a model's weights in the user's cache directory, which makes its second start faster.

The copy is a convenience: whatever is wrong with it or with the disk, loading goes on without it.
It is used only when its source files have the size and time they had, and each of its tensors the digest
noted beside it; it appears under its name only when it is complete.

Its tensors begin at multiples of 64 bytes, as those in memory do. From elsewhere, where the library's own writer puts
them, products take other paths, and the last bits of a second start's logits differ from those of the first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import platformdirs
import torch
from torch import Tensor

from lmcore.checkpoints.progress import Doing, Progress, silent
from lmcore.checkpoints.safetensors_files import SafetensorsFiles
from lmcore.checkpoints.weights import build, own_tensors
from lmcore.config import ModelConfig
from lmcore.model import Model

_FORMAT = 7
_ALIGNMENT = 64  # bytes
_ABANDONED_AFTER = 86_400  # seconds; another process may still be writing what is younger
_DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
_log = logging.getLogger(__name__)


def cache_directory() -> Path:
    """Return where this platform keeps a user's caches, with this project's name below.

    Raises:
        RuntimeError: when the user has no home directory.
    """
    path = platformdirs.user_cache_path("glass-box-lm", appauthor=False)
    if not path.is_absolute():
        raise RuntimeError("there is no home directory")
    return path


class ConvertedCopy:
    """The copy of one source in one dtype.

    Args:
        parts: the source's files.
        dtype: the dtype of the weights.
    """

    def __init__(self, parts: Sequence[Path], dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._folder: Path | None = None
        try:
            facts = [(os.fspath(part.resolve()), part.stat().st_size, part.stat().st_mtime_ns) for part in parts]
            self._source = [path for path, _, _ in facts]
            key = hashlib.sha256(json.dumps([_FORMAT, str(dtype), facts]).encode()).hexdigest()[:32]
            self._folder = cache_directory() / key
        except (OSError, RuntimeError) as error:  # no home directory is a RuntimeError
            _log.info("no converted copy is kept: %s", error)

    def load(self, name: str, said: Progress = silent) -> Model | None:
        """Return the model from its copy, or None when there is no good one; a broken one is removed.

        Args:
            name: what the log calls it.
            said: told the progress.
        """
        if self._folder is None or not (self._folder / "model.json").is_file():
            return None
        try:
            facts = json.loads((self._folder / "model.json").read_text(encoding="utf-8"))
            config = ModelConfig.from_dict(facts["config"])
            weights = self._folder / "model.safetensors"
            source = SafetensorsFiles([weights])
            tensors = {tensor: source.read(tensor, self._dtype) for tensor in source.shapes()}
            if _digests(tensors, Doing.CHECKING_COPY, said) != facts["sha256"]:
                raise ValueError(f"{weights.name} has another SHA-256 than was noted")
            return build(config, source, weights.name, self._dtype, checked=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("the converted copy of %s is not used: %s", name, error)
            shutil.rmtree(self._folder, ignore_errors=True)
            return None

    def save(self, model: Model, name: str, said: Progress = silent) -> None:
        """Write the copy, or leave things as they are when there is no room or no permission.

        Args:
            model: the model.
            name: what the log calls it.
            said: told the progress.
        """
        if self._folder is None or self._dtype not in _DTYPES:
            return
        said(Doing.KEEPING_COPY, 0.0)
        unfinished: str | None = None
        try:
            root = self._folder.parent
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            needed = sum(tensor.nbytes for tensor in own_tensors(model).values())
            if shutil.disk_usage(root).free < needed + (1 << 30):
                _log.info("no converted copy of %s is kept: less than %s bytes and 1 GiB are free", name, needed)
                return
            unfinished = tempfile.mkdtemp(dir=root, prefix="unfinished-")
            self._remove_older()
            self._write(Path(unfinished), model, said)
            if not (self._folder / "model.json").is_file():  # what is left of a broken one
                shutil.rmtree(self._folder, ignore_errors=True)
            os.rename(unfinished, self._folder)
        except OSError as error:
            _log.info("no converted copy of %s is kept: %s", name, error)
        finally:
            if unfinished is not None:
                shutil.rmtree(unfinished, ignore_errors=True)

    def _write(self, folder: Path, model: Model, said: Progress) -> None:
        facts = {
            "source": self._source,
            "dtype": str(self._dtype),
            "config": model.config.to_dict(),
            "sha256": _digests(own_tensors(model), Doing.KEEPING_COPY, said),
        }
        _write_aligned(own_tensors(model), folder / "model.safetensors")
        (folder / "model.json").write_text(json.dumps(facts), encoding="utf-8")

    def _remove_older(self) -> None:
        """Remove the copies of the same source as it was before it changed, and what was never finished."""
        assert self._folder is not None
        for unfinished in self._folder.parent.glob("unfinished-*"):
            if time.time() - unfinished.stat().st_mtime > _ABANDONED_AFTER:
                shutil.rmtree(unfinished, ignore_errors=True)
        for facts_path in self._folder.parent.glob("*/model.json"):
            try:
                facts: dict[str, Any] = json.loads(facts_path.read_text(encoding="utf-8"))
            except ValueError:
                continue
            if facts.get("source") == self._source and facts.get("dtype") == str(self._dtype):
                shutil.rmtree(facts_path.parent, ignore_errors=True)


def _digests(tensors: Mapping[str, Tensor], what: Doing, said: Progress) -> dict[str, str]:
    """Return the SHA-256 of each tensor's bytes, computed on all processors: hashing lets go of Python's lock."""
    found: dict[str, str] = {}
    done, total = 0, sum(tensor.nbytes for tensor in tensors.values())
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        for (name, tensor), digest in zip(tensors.items(), pool.map(_sha256, tensors.values()), strict=True):
            found[name] = digest
            done += tensor.nbytes
            said(what, done / total)
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _sha256(tensor: Tensor) -> str:
    return hashlib.sha256(_bytes_of(tensor)).hexdigest()


def _bytes_of(tensor: Tensor) -> memoryview:
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data


def _write_aligned(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file: the header's length in eight bytes, the header in JSON, then the tensors' bytes."""
    header, end = {}, 0
    for name, tensor in tensors.items():
        offsets = [end, end + tensor.nbytes]
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        end += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(_bytes_of(tensor))
