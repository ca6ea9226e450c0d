"""Loading a large model: how far it is, stopping it, and another session that goes on waiting."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

import lmcore
from tests.browser.conftest import Server

GEMMA = "/tokenization?model=gemma-3-270m&lang=en&prompt=今天天气"
PATIENCE = 120_000  # ms; the first start converts the file


@pytest.fixture
def empty_cache_server(tmp_path, monkeypatch):
    if not {model.name: model for model in lmcore.available()}["gemma-3-270m"].installed:
        pytest.skip("gemma-3-270m is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = Server("app.py", tmp_path / "log.txt")
    yield server
    server.stop()


def test_loading_is_shown_and_stopped_for_one_and_goes_on_for_another(
    empty_cache_server: Server, browser: Browser
) -> None:
    first, second = (browser.new_context(locale="en-US").new_page() for _ in range(2))
    first.goto(empty_cache_server.url + GEMMA)
    stop = first.get_by_role("button", name="Stop loading")
    stop.wait_for(timeout=PATIENCE)
    expect(first.get_by_test_id("stProgress")).to_contain_text("gemma-3-270m")
    second.goto(empty_cache_server.url + GEMMA)
    second.get_by_role("button", name="Stop loading").wait_for(timeout=PATIENCE)
    stop.click()
    expect(first.get_by_text("Loading gemma-3-270m was stopped.")).to_be_visible(timeout=PATIENCE)
    # The prompt stays, and the model shown is one that is there.
    expect(first.get_by_label("Prompt", exact=True)).to_have_value("今天天气")
    expect(first.get_by_role("combobox", name="Model")).to_have_value("small-world", timeout=PATIENCE)
    expect(second.get_by_text("position 0 is that token")).to_be_visible(timeout=PATIENCE)
    expect(second.get_by_role("button", name="Stop loading")).to_have_count(0)
    for page in (first, second):
        expect(page.get_by_test_id("stException")).to_have_count(0)
        page.close()
