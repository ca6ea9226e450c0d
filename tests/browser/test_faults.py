"""What goes wrong around a class: the page comes back as its address says, and no number is wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page, expect

import lmcore
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.loading import FOLDER_VARIABLE
from tests.browser.conftest import Server, settle
from tests.browser.views import shown_errors
from tests.lmcore.checkpoints.tiny import write_folder

PATIENCE = 120_000  # ms
STATE = "/blocks?lang=en&prompt=The+king&layer=2&head=1&blocks.view=attention"
Visit = Callable[[str], Page]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Give a function that opens a whole address in a browser profile of its own."""
    contexts = []

    def open_(url: str) -> Page:
        context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        settle(page)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    running = Server("app.py", tmp_path / "log.txt")
    yield running
    running.stop()


def text_of(page: Page) -> str:
    """Return all that the page says, numbers included, once it says the same for a second: parts are drawn late."""
    settle(page)
    page.get_by_test_id("stPageLink").last.wait_for()  # what to try next, at the end of every page
    main = page.get_by_test_id("stMain")
    text, before = main.inner_text(), None
    while text != before:
        page.wait_for_timeout(1000)
        text, before = main.inner_text(), text
    return text


def write_prompt(page: Page, text: str) -> None:
    """Write a prompt until the address has it: what is typed before a new session's first run ended is overwritten."""
    for _ in range(20):
        page.get_by_label("Prompt", exact=True).fill(text)
        page.get_by_label("Prompt", exact=True).press("Enter")
        page.wait_for_timeout(1500)
        settle(page)
        if f"prompt={quote_plus(text)}&" in page.url:
            return
    pytest.fail(f"the address never has {text!r}: {page.url}")


def expect_as_elsewhere(page: Page, visit: Visit) -> None:
    """The page says what its address says in a fresh browser."""
    fresh = visit(page.url)
    wanted = text_of(fresh)
    for _ in range(40):
        if text_of(page) == wanted:
            break
        page.wait_for_timeout(250)
    assert text_of(page) == wanted
    assert (
        page.get_by_label("Prompt", exact=True).input_value() == fresh.get_by_label("Prompt", exact=True).input_value()
    )
    assert shown_errors(page) == []


def test_an_open_page_comes_back_when_the_server_was_killed_and_started_again(own_server: Server, visit: Visit) -> None:
    page = visit(own_server.url + STATE)
    before = text_of(page)
    own_server.stop()
    page.wait_for_timeout(1500)
    own_server.start()
    settle(page)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)
    write_prompt(page, "I like")
    expect_as_elsewhere(page, visit)
    assert "layer=2" in page.url and "head=1" in page.url and "blocks.view=attention" in page.url
    write_prompt(page, "The king")
    assert text_of(page) == before


def test_a_model_whose_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Visit) -> None:
    write_folder("llama", tmp_path / "models" / "tiny")
    write_folder("gpt2", tmp_path / "models" / "other")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    server = Server("app.py", tmp_path / "log.txt")
    try:
        address = server.url + "/logits?lang=en&prompt=the+cat&model="
        page = visit(address + "tiny")
        before = text_of(page)
        for weights in (tmp_path / "models" / "other").glob("*.safetensors"):
            weights.write_bytes(weights.read_bytes()[:100])
        broken = visit(address + "other")
        expect(broken.get_by_text("could not be loaded, so nothing is shown")).to_be_visible()
        assert broken.locator(".js-plotly-plot, [data-testid=stDataFrame]").count() == 0
        shutil.rmtree(tmp_path / "models" / "tiny")
        fresh = visit(address + "tiny")
        expect(fresh.get_by_text("There is no model named tiny; showing small-world.")).to_be_visible()
        assert before != text_of(fresh)
        assert shown_errors(fresh) == []
    finally:
        server.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system, on Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_full_while_a_model_is_cached(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Visit
) -> None:
    if not PACKAGED["smollm2-135m-instruct"].installed:
        pytest.skip("smollm2-135m-instruct is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    server = Server("app.py", tmp_path / "log.txt")
    try:
        page = visit(server.url + "/logits?lang=en&prompt=The+king&model=smollm2-135m-instruct")
        expect(page.get_by_role("heading", name="The same in Python")).to_be_visible()
        assert shown_errors(page) == []
        expect(page.get_by_role("combobox", name="Model")).to_have_value("smollm2-135m-instruct")
        lm = lmcore.load("smollm2-135m-instruct")
        likeliest = lm.tokenizer.token_bytes(int(lm(lm.tokenizer.encode("The king").ids)[-1].argmax())).decode()
        expect(page.get_by_text(likeliest.strip()).first).to_be_visible()
        assert list(small_disk.rglob("*.safetensors")) == []
    finally:
        server.stop()


def test_two_hundred_quick_reruns_end_at_the_last(server: Server, visit: Visit) -> None:
    page = visit(server.url + STATE.replace("view=attention", "view=mlp"))
    field = page.get_by_label("Prompt", exact=True)
    prompts = ("The king", "I like", "今天天气", "The weather today is", "小明喜欢小红", "x", "I")
    for prompt in islice(cycle(prompts), 199):
        field.fill(prompt)
        field.press("Enter")
    field.fill("The weather today")
    field.press("Enter")
    page.wait_for_url(re.compile(r"prompt=The\+weather\+today&"))
    expect_as_elsewhere(page, visit)
    assert "blocks.view=mlp" in page.url and "layer=2" in page.url


def test_back_and_forward_show_the_numbers_of_their_address(server: Server, visit: Visit) -> None:
    page = visit(server.url + STATE)
    navigation = page.get_by_test_id("stSidebarNav")
    for name in ("LM head and logits", "Sampling", "Tokenization"):
        navigation.get_by_role("link", name=name).click(delay=80)
        settle(page)
    for step in (page.go_back, page.go_back, page.go_back, page.go_forward, page.go_forward):
        step()
        settle(page)
        page.wait_for_url(re.compile(r"prompt=The\+king&"))
        expect_as_elsewhere(page, visit)
    assert "/sampling" in page.url


def test_nothing_that_was_typed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Visit) -> None:
    typed = "a7f3 secret of mine"
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    server = Server("app.py", tmp_path / "log.txt")
    try:
        for page_name in ("tokenization", "generation"):
            visit(f"{server.url}/{page_name}?lang=en&prompt={typed.replace(' ', '+')}")
    finally:
        server.stop()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [str(path) for path in files if typed.encode() in path.read_bytes()] == []
