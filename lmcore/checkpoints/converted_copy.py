"""A converted copy of a model's weights in the user's cache directory, which makes its second start faster.

The copy is a convenience: whatever is wrong with it or with the disk, loading goes on without it.
It is used only when its source files have the size and time they had, and each of its tensors the checksum
noted beside it; it appears under its name only when it is complete. It is written in a thread, which the end of the
program waits for: weights that somebody changes meanwhile have another checksum than was noted before.

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
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from torch import Tensor

from lmcore.checkpoints.progress import Doing, Progress, silent
from lmcore.checkpoints.safetensors_files import SafetensorsFiles
from lmcore.checkpoints.weights import build, each_in_threads, own_tensors
from lmcore.config import ModelConfig
from lmcore.model import Model

_FORMAT = 8
_ALIGNMENT = 64  # bytes
_SUMMED = 1 << 17  # numbers of eight bytes that have one sum
_ABANDONED_AFTER = 86_400  # seconds; another process may still be writing what is younger
_DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
_log = logging.getLogger(__name__)
_writing: set[threading.Thread] = set()


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
            if _checksums(tensors, Doing.CHECKING_COPY, said) != facts["checksums"]:
                raise ValueError(f"{weights.name} has another checksum than was noted")
            return build(config, source, weights.name, self._dtype, checked=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("the converted copy of %s is not used: %s", name, error)
            shutil.rmtree(self._folder, ignore_errors=True)
            return None

    def save(self, model: Model, name: str, said: Progress = silent) -> None:
        """Begin to write the copy; without room or permission things are left as they are. `finish` waits for it.

        Args:
            model: the model.
            name: what the log calls it.
            said: told the progress.
        """
        if self._folder is None or self._dtype not in _DTYPES:
            return
        said(Doing.KEEPING_COPY, 0.0)
        # Aliases: who puts other numbers in the parameters' place, as quantising does, leaves these.
        tensors = {name: tensor.detach() for name, tensor in own_tensors(model).items()}
        facts = {
            "source": self._source,
            "dtype": str(self._dtype),
            "config": model.config.to_dict(),
            "checksums": _checksums(tensors, Doing.KEEPING_COPY, said),
        }
        thread = threading.Thread(target=self._save, args=(self._folder, tensors, facts, name), name=f"copy of {name}")
        _writing.add(thread)
        thread.start()

    def _save(self, folder: Path, tensors: Mapping[str, Tensor], facts: dict[str, Any], name: str) -> None:
        unfinished: str | None = None
        try:
            root = folder.parent
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            needed = sum(tensor.nbytes for tensor in tensors.values())
            if shutil.disk_usage(root).free < needed + (1 << 30):
                _log.info("no converted copy of %s is kept: less than %s bytes and 1 GiB are free", name, needed)
                return
            unfinished = tempfile.mkdtemp(dir=root, prefix="unfinished-")
            self._remove_older(root)
            _write_aligned(tensors, Path(unfinished) / "model.safetensors")
            (Path(unfinished) / "model.json").write_text(json.dumps(facts), encoding="utf-8")
            if not (folder / "model.json").is_file():  # what is left of a broken one
                shutil.rmtree(folder, ignore_errors=True)
            os.rename(unfinished, folder)
        except OSError as error:
            _log.info("no converted copy of %s is kept: %s", name, error)
        finally:
            if unfinished is not None:
                shutil.rmtree(unfinished, ignore_errors=True)
            _writing.discard(threading.current_thread())

    def _remove_older(self, root: Path) -> None:
        """Remove copies of the same source as it was before it changed and of files that are gone, and what was never
        finished."""
        for unfinished in root.glob("unfinished-*"):
            with suppress(OSError):  # finished meanwhile
                if time.time() - unfinished.stat().st_mtime > _ABANDONED_AFTER:
                    shutil.rmtree(unfinished, ignore_errors=True)
        for facts_path in root.glob("*/model.json"):
            try:
                facts = json.loads(facts_path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if not isinstance(facts, dict) or not isinstance(source := facts.get("source"), list):
                continue
            is_older = source == self._source and facts.get("dtype") == str(self._dtype)
            if is_older or any(not isinstance(path, str) or _is_gone(path) for path in source):
                shutil.rmtree(facts_path.parent, ignore_errors=True)


def _is_gone(path: str) -> bool:
    """Whether a file was removed: where its folder is not there either, its disk may only be elsewhere."""
    return not os.path.exists(path) and os.path.isdir(os.path.dirname(path))


def finish() -> None:
    """Wait until every copy that is being written is there."""
    for thread in list(_writing):
        thread.join()


def _checksums(tensors: Mapping[str, Tensor], what: Doing, said: Progress) -> dict[str, str]:
    found: dict[str, str] = {}
    done, total = 0, sum(tensor.nbytes for tensor in tensors.values())
    with each_in_threads(_checksum, tensors.values()) as checksums:
        for (name, tensor), checksum in zip(tensors.items(), checksums, strict=True):
            found[name] = checksum
            done += tensor.nbytes
            said(what, done / total)
    return found


def _checksum(tensor: Tensor) -> str:
    """Return what any disk or interrupted writing changes: the digest of the sums of its parts, at memory's speed."""
    data = np.frombuffer(_bytes_of(tensor), np.uint8)
    numbers, rest = data[: len(data) // 8 * 8].view(np.uint64), data[len(data) // 8 * 8 :]
    sums = [int(numbers[start : start + _SUMMED].sum()) for start in range(0, len(numbers), _SUMMED)]
    return hashlib.sha256(repr((sums, rest.tolist())).encode()).hexdigest()


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
