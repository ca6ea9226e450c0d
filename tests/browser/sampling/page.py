"""The sampling page as its browser tests read it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

import lmcore
from lmcore.sampling import SamplingSettings, reshape
from tests.browser.conftest import OpenPage, settle

MODEL = "small-world"
PROMPT = "今天天气"


def tile(page: Page, name: str) -> str:
    return page.locator(f".tile[data-tile={name}] strong").inner_text()


def rows(page: Page, n: int) -> list[dict[str, str]]:
    return page.evaluate(
        """(n) => {
          const host = [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector(".lab"));
          const root = (host?.shadowRoot ?? document).querySelector(".list");
          const text = (row, name) => row.querySelector("." + name).textContent;
          return [...root.children].slice(0, n).map((row) =>
            Object.fromEntries(["token", "id", "logit", "was", "now"].map((name) => [name, text(row, name)])));
        }""",
        n,
    )


def changed(page: Page, name: str, before: str) -> str:
    """Return a tile's text once it is no longer what it was."""
    expect(page.locator(f".tile[data-tile={name}] strong")).not_to_have_text(before)
    return tile(page, name)


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def expect_query(page: Page, **expected: str) -> None:
    for _ in range(300):
        if expected.items() <= query(page).items():
            return
        page.wait_for_timeout(100)
    assert {name: query(page).get(name) for name in expected} == expected


def open_lab(open_page: OpenPage, **parameters: str) -> Page:
    address = "&".join(
        f"{name}={quote(value)}" for name, value in {"lang": "en", "prompt": PROMPT, **parameters}.items()
    )
    page = open_page(f"/sampling?{address}", viewport={"width": 1400, "height": 1000})
    page.locator(".row .now").first.wait_for(timeout=60_000)
    return page


def count_messages(page: Page) -> list[int]:
    """Return a list that gets the size of each message the browser sends from a reload on."""
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda payload: sent.append(len(payload))))
    page.reload()
    settle(page)
    page.locator(".row .now").first.wait_for()
    page.wait_for_timeout(500)
    sent.clear()
    return sent


def model_result(**settings: Any) -> tuple[Any, lmcore.LanguageModel]:
    lm = lmcore.load(MODEL)
    ids = lm.tokenizer.encode(PROMPT).ids
    return reshape(lm(ids)[-1], SamplingSettings(**settings), lmcore.History(prompt=ids)), lm


def assert_rows_are(page: Page, result: Any) -> None:
    ids = lmcore.distribution.top(result.start.logits, 10).ids.tolist()
    for row, token in zip(rows(page, 10), ids, strict=True):
        assert row["id"] == str(token)
        assert float(row["was"].split()[0]) == pytest.approx(100 * result.initial_probs[token].item(), abs=0.00501)
        if result.probs[token] > 0:
            assert float(row["now"].split()[0]) == pytest.approx(100 * result.probs[token].item(), abs=0.00501)
        else:
            assert not re.search(r"\d", row["now"])
