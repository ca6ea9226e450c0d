"""When the server answers late: what the reader did last wins, and what is drawn is what is shown."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.delaying_proxy import DelayingProxy
from tests.browser.late import controls, faults

LATE = 1.0  # seconds


def test_a_prompt_typed_after_an_example_stays(delaying_proxy: DelayingProxy, open_page: OpenPage) -> None:
    page = open_page(delaying_proxy.url + "/tokenization?lang=en&prompt=x")
    prompt = page.get_by_label("Prompt", exact=True)
    delaying_proxy.delay = LATE
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="The king").click()
    prompt.fill("I like tea")
    page.wait_for_timeout(2 * 1000 * LATE)  # the answer to the example comes while the text is not sent yet
    expect(prompt).to_have_value("I like tea")
    prompt.press("Enter")
    delaying_proxy.settle(page)
    expect(prompt).to_have_value("I like tea")
    assert "prompt=I+like+tea" in page.url


def test_two_prompts_sent_before_an_answer_end_at_the_second(
    delaying_proxy: DelayingProxy, open_page: OpenPage
) -> None:
    page = open_page(delaying_proxy.url + "/tokenization?lang=en&prompt=x")
    prompt = page.get_by_label("Prompt", exact=True)
    with delaying_proxy.held():
        for text in ("one", "two"):
            prompt.fill(text)
            prompt.press("Enter")
            page.wait_for_timeout(300)
    delaying_proxy.settle(page)
    expect(prompt).to_have_value("two")
    assert "prompt=two" in page.url


def test_a_chip_chosen_while_another_is_answered_stays(delaying_proxy: DelayingProxy, open_page: OpenPage) -> None:
    page = open_page(delaying_proxy.url + "/sampling?lang=en&prompt=The+weather+today+is")
    chips = page.get_by_role("listbox").first.get_by_role("option")
    expect(chips).to_have_count(4)
    delaying_proxy.delay = LATE
    for place in (0, 2):
        chips.nth(place).click()
        page.wait_for_timeout(400)
    page.wait_for_timeout(1000 * LATE)  # the answer to the first is here, the other's is not
    expect(chips.nth(2)).to_have_attribute("aria-selected", "true")
    delaying_proxy.settle(page)
    expect(chips.nth(2)).to_have_attribute("aria-selected", "true")
    assert "position=2" in page.url


# Pages with sliders, lists, chips, fields and switches; `python -m tests.bench.late_answers` works all of them.
PAGES = (
    "/embedding?table.view=neighbours",
    "/position?position.view=rope",
    "/generation?top_n=5",
)


def test_controls_worked_before_the_answer_keep_what_was_done_last(
    delaying_proxy: DelayingProxy, open_page: OpenPage
) -> None:
    for address in PAGES:
        page = open_page(f"{delaying_proxy.url}{address}&lang=en&prompt=The+weather+today+is")
        page.get_by_role("heading", name="The same in Python").wait_for()  # the end of a page
        few = controls(page)[:3]
        assert len(few) == 3, address
        assert list(faults(page, delaying_proxy, open_page, seconds=0.6, chosen=few)) == [], address
        page.close()
