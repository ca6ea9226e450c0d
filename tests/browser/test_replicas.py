"""Behind nginx with two replicas, for real: sessions stay with their replica, and outlive it."""

from __future__ import annotations

import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.common.headers import HEADERS
from tests.browser.conftest import settle
from tests.browser.test_faults import text_of, write_prompt
from tests.browser.views import shown_errors
from tests.deployment.replicas import Deployment, running

PATIENCE = 120_000  # ms
STATE = "/blocks?lang=en&prompt=The+king&layer=2&head=1&blocks.view=attention"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    if shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        pytest.skip("nginx is not installed (Debian: apt-get install nginx-light)")
    folder = tmp_path_factory.mktemp("nginx")
    with running(folder) as deployment:
        yield deployment


def visit(browser: Browser, url: str) -> Page:
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(url)
    settle(page)
    return page


def replica_of(page: Page, deployment: Deployment) -> str:
    """Return the replica that served the page's download, and check that it was its own."""
    before = len(deployment.log.read_text().splitlines())
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").first.click()
    assert Path(download.value.path()).read_text(encoding="utf-8-sig").count("\n") >= 3
    (served,) = set(deployment.served("/media/", after=before))
    return served


def test_a_browser_stays_with_its_replica_and_both_serve(browser: Browser, deployment: Deployment) -> None:
    found = []
    for _visitor in range(8):
        page = visit(browser, deployment.url + STATE)
        first = replica_of(page, deployment)
        page.reload()
        settle(page)
        assert replica_of(page, deployment) == first
        assert shown_errors(page) == []
        found.append(first)
        page.context.close()
        if set(found) == set(deployment.replicas):
            break
    assert set(found) == set(deployment.replicas)


def test_headers_reach_the_browser_and_prompts_do_not_reach_the_log(deployment: Deployment) -> None:
    with urllib.request.urlopen(f"{deployment.url}/blocks?prompt=secret-words") as answer:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers.get_all("Set-Cookie")[-1].startswith("replica=")
    assert deployment.served("/blocks")
    assert "secret-words" not in deployment.log.read_text()


def test_the_longest_prompt_passes_the_proxy(deployment: Deployment) -> None:
    with urllib.request.urlopen(f"{deployment.url}/tokenization?prompt={'%E5%AD%97' * 4000}") as answer:
        assert answer.status == 200


def test_a_session_whose_replica_is_killed_goes_on_at_the_other(browser: Browser, deployment: Deployment) -> None:
    page = visit(browser, deployment.url + STATE)
    before = text_of(page)
    own = replica_of(page, deployment)
    deployment.replicas[own].kill()
    expect(page.locator("[data-testid=stApp][data-test-connection-state=CONNECTED]")).to_have_count(0)
    expect(page.locator("[data-testid=stApp][data-test-connection-state=CONNECTED]")).to_have_count(1, timeout=PATIENCE)
    settle(page)
    write_prompt(page, "I like")
    assert text_of(page) != before
    write_prompt(page, "The king")
    assert text_of(page) == before
    assert "layer=2" in page.url and "head=1" in page.url
    assert replica_of(page, deployment) != own
    page.context.close()
