"""Models of the hub, downloaded from a server on this machine that speaks as the hub does."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

import lmcore
from lmcore.loading import Doing, LoadingCancelled
from tests.lmcore.checkpoints.tiny import write_folder

SHA = "0123456789abcdef0123456789abcdef01234567"
ID = "someone/tiny"


class _Hub(BaseHTTPRequestHandler):
    """A repository of one revision, its files served whole or from a byte on."""

    folder: Path
    asked: list[tuple[str, str, int]]  # method, file, first byte
    breaks_off: bool = False  # in the middle of the weights
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args) -> None:
        pass

    def do_HEAD(self) -> None:
        self._file(whole=False)

    def do_GET(self) -> None:
        if self.path.split("?")[0] == f"/api/models/{ID}":
            files = (path for path in self.folder.rglob("*") if path.is_file())
            names = sorted(path.relative_to(self.folder).as_posix() for path in files)
            told = {"id": ID, "sha": SHA, "siblings": [{"rfilename": name} for name in names]}
            self._answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})
        else:
            self._file(whole=True)

    def _file(self, whole: bool) -> None:
        found = re.fullmatch(rf"/{ID}/resolve/{SHA}/([\w./]+)", self.path.split("?")[0])
        if found is None or not (self.folder / found[1]).is_file():
            self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})
            return
        data = (self.folder / found[1]).read_bytes()
        first = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "bytes=0-")[1])
        self.asked.append((self.command, found[1], first))
        headers = {"ETag": f'"{found[1]}-1"', "X-Repo-Commit": SHA, "Accept-Ranges": "bytes"}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        sent = len(data)
        if whole and not first and self.breaks_off and found[1] == "model.safetensors":
            sent //= 2
            self.close_connection = True
        self._answer(206 if first else 200, data[first:], headers, sent if whole else 0)

    def _answer(self, status: int, body: bytes, headers: dict[str, str], sent: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:sent])


def at(endpoint: str, monkeypatch) -> None:
    """Set what HF_ENDPOINT sets when the library is imported."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub's handler; its repository holds a tiny model, a pickle and a picture."""
    folder = tmp_path / "repository"
    folder.mkdir()
    write_folder("llama", folder)
    (folder / "pytorch_model.bin").write_bytes(b"never asked for")
    (folder / "logo.png").write_bytes(b"never asked for")
    handler = type("Handler", (_Hub,), {"folder": folder, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at(f"http://127.0.0.1:{server.server_address[1]}", monkeypatch)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    yield handler
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_model_is_downloaded_with_progress_and_is_the_folders(hub):
    said = []
    lm = lmcore.load(ID, progress=lambda what, share: said.append((what, share)))
    assert lm.name == ID
    assert torch.equal(lm([1, 2, 3]), lmcore.load(hub.folder)([1, 2, 3]))
    shares = [share for what, share in said if what is Doing.DOWNLOADING]
    assert len(shares) > 5 and shares.count(1.0) >= 3 and shares[-1] == 1.0  # three files, one after the other
    assert all(before <= after or before == 1.0 for before, after in zip(shares, shares[1:], strict=False))
    fetched = {name for method, name, _ in hub.asked if method == "GET"}
    assert fetched == {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}


def test_chat_templates_are_downloaded_wherever_they_are_read(hub):
    (hub.folder / "chat_template.json").write_text('{"chat_template": "one"}')
    (hub.folder / "additional_chat_templates").mkdir()
    (hub.folder / "additional_chat_templates" / "tool_use.jinja").write_text("two")
    lm = lmcore.load(ID)
    assert (lm.chat_template.source, lm.chat_template.named) == ("one", {"tool_use": "two"})


def test_what_is_there_is_not_fetched_again_and_serves_without_the_hub(hub, monkeypatch):
    first = lmcore.load(ID)
    hub.asked.clear()
    again = lmcore.load(ID)
    assert not [each for each in hub.asked if each[0] == "GET"]
    at("http://127.0.0.1:9", monkeypatch)
    for lm in (again, lmcore.load(ID)):
        assert torch.equal(first([1, 2, 3]), lm([1, 2, 3]))


@pytest.mark.slow
def test_a_download_that_broke_off_goes_on_where_it_was(hub):
    hub.breaks_off = True
    lm = lmcore.load(ID)
    starts = [first for method, name, first in hub.asked if (method, name) == ("GET", "model.safetensors")]
    assert len(starts) == 2 and starts[0] == 0
    assert starts[1] > 0.4 * (hub.folder / "model.safetensors").stat().st_size
    assert torch.equal(lm([1, 2, 3]), lmcore.load(hub.folder)([1, 2, 3]))


def test_a_cancelled_download_leaves_no_model_and_can_be_begun_again(hub, monkeypatch):
    files: list[float] = []

    def cancel(what: str, share: float) -> None:
        files.append(share)
        if what is Doing.DOWNLOADING and files.count(1.0) and 0.4 < share < 1:
            raise LoadingCancelled

    with pytest.raises(LoadingCancelled):
        lmcore.load(ID, progress=cancel)
    with monkeypatch.context() as offline:
        at("http://127.0.0.1:9", offline)
        with pytest.raises(ValueError, match="could not be downloaded"):
            lmcore.load(ID)
    assert torch.equal(lmcore.load(ID)([1, 2, 3]), lmcore.load(hub.folder)([1, 2, 3]))


def test_a_model_that_is_not_there_is_said_in_one_sentence(hub):
    with pytest.raises(ValueError, match=r"^someone/else could not be downloaded: [^\n]+$"):
        lmcore.load("someone/else")
