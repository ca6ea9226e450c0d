"""Models of the Hugging Face hub: downloaded once into the hub's own cache, then read from their folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lmcore.checkpoints.progress import Doing, Progress, silent

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_WANTED = re.compile(
    r"(generation_)?config\.json|tokenizer(_config)?\.json|chat_template\.(jinja|json)|"
    r"additional_chat_templates/[\w.-]+\.jinja|model(-\d+-of-\d+)?\.safetensors(\.index\.json)?"
)


def is_hub_id(name: str) -> bool:
    """Return whether a name has the form owner/model.

    >>> is_hub_id("Qwen/Qwen3-0.6B"), is_hub_id("/etc/passwd"), is_hub_id("../models"), is_hub_id("a/b/c")
    (True, False, False, False)
    """
    return _ID.fullmatch(name) is not None and ".." not in name


def download(hub_id: str, said: Progress = silent) -> Path:
    """Return the local folder of a hub model, after downloading what is not there yet; pickles never are.

    Raises:
        ValueError: when there is no such model, no access to it or no connection.
    """
    import huggingface_hub

    try:
        info = huggingface_hub.HfApi().model_info(hub_id)
        names = [file.rfilename for file in info.siblings or () if _WANTED.fullmatch(file.rfilename)]
        # config.json is the last to come: a folder that has it has all. Files in folders are the first.
        names.sort(key=lambda name: (name == "config.json", "/" not in name))
        paths = [
            huggingface_hub.hf_hub_download(hub_id, name, revision=info.sha, tqdm_class=_bar(said)) for name in names
        ]
    except _failures() as error:
        if (kept := _kept(hub_id)) is not None:
            return kept
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{hub_id} could not be downloaded: {reason}") from error
    if not paths:
        raise ValueError(f"{hub_id} has no config.json, safetensors or tokenizer.json; other forms are not read.")
    return Path(paths[-1]).parent


def _failures() -> tuple[type[Exception], ...]:
    """What the hub's client raises for its own and its connection's troubles."""
    import huggingface_hub.errors
    from huggingface_hub.utils import httpx

    return (huggingface_hub.errors.HfHubHTTPError, httpx.HTTPError, OSError, ValueError)


def _kept(hub_id: str) -> Path | None:
    """Return the folder of the latest download that came to its end."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    snapshots = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=hub_id, repo_type="model"), "snapshots")
    whole = [config.parent for config in snapshots.glob("*/config.json")]
    return max(whole, key=lambda folder: folder.stat().st_mtime, default=None)


def _bar(said: Progress) -> type[Any]:
    """Return a progress bar that also tells `said`."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        def update(self, n: float | None = 1) -> bool | None:
            drawn = super().update(n)
            said(Doing.DOWNLOADING, min(self.n / self.total, 1.0) if self.total else 0.0)
            return drawn

    return Bar
