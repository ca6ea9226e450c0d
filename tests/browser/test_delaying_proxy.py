"""The slow line itself: it delays what the server says, loses nothing, and tells when all of it has come."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.delaying_proxy import DelayingProxy


def test_answers_come_late_and_whole(delaying_proxy: DelayingProxy, open_page: OpenPage) -> None:
    page = open_page(delaying_proxy.url + "/tokenization?prompt=The+king")
    prompt = page.get_by_label("Prompt", exact=True)
    delaying_proxy.delay = 2.0
    prompt.fill("I like")
    prompt.press("Enter")
    page.wait_for_timeout(1000)
    assert "prompt=The+king" in page.url
    page.wait_for_url("**prompt=I+like**")
    with delaying_proxy.held():
        prompt.fill("The king likes")
        prompt.press("Enter")
        page.wait_for_timeout(1500)
        assert "prompt=I+like" in page.url
    delaying_proxy.settle(page)
    assert "prompt=The+king+likes" in page.url
    expect(prompt).to_have_value("The king likes")
