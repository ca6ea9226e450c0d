"""The prompt's field: many lines, an input method, examples, halves of characters, texts too long for an address."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

from pages.common.link import LONGEST
from tests.browser.conftest import OpenPage, settle

MARK = "⏎"


def field_of(page: Page) -> Locator:
    return page.get_by_label("Prompt", exact=True)


def prompt_in_address(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("prompt", [""])[0]


def expect_prompt(page: Page, text: str) -> None:
    settle(page)
    page.wait_for_function("text => new URLSearchParams(location.search).get('prompt') === text", arg=text)
    expect(field_of(page)).to_have_value(text)


def test_shift_enter_breaks_the_line_and_enter_sends(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    field_of(page).fill("one")
    field_of(page).press("Shift+Enter")
    field_of(page).press_sequentially("two")
    assert prompt_in_address(page) == "x"  # nothing is sent yet
    field_of(page).press("Enter")
    expect_prompt(page, "one\ntwo")
    expect(page.get_by_test_id("stMain").get_by_text(MARK).first).to_be_visible()


def test_a_pasted_new_line_stays(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    field_of(page).press("Control+A")
    page.evaluate("navigator.clipboard.writeText('The king\\nThe queen')")
    field_of(page).press("Control+V")
    field_of(page).press("Enter")
    expect_prompt(page, "The king\nThe queen")


def test_a_link_with_a_new_line_shows_what_is_tokenized(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=a%0Ab")
    expect(field_of(page)).to_have_value("a\nb")
    expect(page.get_by_test_id("stMain").get_by_text("2 lines")).to_be_visible()
    field_of(page).press("End")
    field_of(page).press_sequentially("c")
    field_of(page).press("Enter")
    expect_prompt(page, "a\nbc")


def test_an_enter_of_an_input_method_neither_sends_nor_breaks(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    field_of(page).fill("jin")
    for composing in ({"isComposing": True}, {"keyCode": 229}):
        field_of(page).evaluate(
            "(field, kind) => field.dispatchEvent(new KeyboardEvent('keydown', "
            "{ key: 'Enter', bubbles: true, composed: true, cancelable: true, ...kind }))",
            composing,
        )
    settle(page)
    expect(field_of(page)).to_have_value("jin")
    assert prompt_in_address(page) == "x"


def test_an_example_fills_the_prompt_and_can_be_chosen_again(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    for _ in range(2):
        page.get_by_role("button", name="Examples").click()
        page.get_by_role("menuitem", name="苹果发布了").click()
        expect_prompt(page, "苹果发布了")
        field_of(page).fill("x")
        field_of(page).press("Enter")
        expect_prompt(page, "x")


def test_examples_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    page.get_by_role("button", name="Examples").press("Enter")
    items = page.get_by_role("menuitem")
    expect(items.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(items.nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(items.first).to_be_hidden()
    page.get_by_role("button", name="Examples").press("Enter")
    first = items.first.inner_text()
    page.keyboard.press("Enter")
    expect_prompt(page, first)


def test_half_a_character_is_replaced_and_said_in_every_field(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x&tokenization.view=compare")
    fields = page.locator("input[type=text], textarea")
    expect(fields.nth(1)).to_be_visible()
    for index in range(fields.count()):
        field = fields.nth(index)
        if not field.is_visible() or field.get_attribute("role") == "combobox":
            continue
        field.evaluate(
            """field => {
                field.focus();
                const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value");
                set.call(field, "a" + String.fromCharCode(0xdbc0) + "b");
                field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
            }"""
        )
        expect(page.get_by_text("is no text and was replaced")).to_be_visible()
        field.press("Enter")
        settle(page)
        expect(field).to_have_value("a\ufffdb")
    page.get_by_role("radio", name="简体中文").click()  # the session lives
    settle(page)
    assert "lang=zh" in page.url


def test_a_text_too_long_for_an_address_outlives_a_reload(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en&prompt=x")
    text = "The king " * 7000
    field_of(page).press("Control+A")
    field_of(page).fill(text)
    field_of(page).press("Enter")
    settle(page)
    expect(page.get_by_text("This prompt has 63,000 characters").first).to_be_visible()
    page.reload()
    settle(page)
    expect(page.get_by_text("This prompt has 63,000 characters").first).to_be_visible()
    expect(field_of(page)).to_have_value(text)
    field_of(page).fill("short")
    field_of(page).press("Enter")
    expect_prompt(page, "short")
    page.reload()
    expect_prompt(page, "short")


def test_a_conversation_is_written_below_the_line_and_reaches_the_page_and_the_address(open_page: OpenPage) -> None:
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    page = open_page(f"/tokenization?lang=en&prompt=hello&tokenization.view=chat&chat.template={quote(template)}")
    bar = page.locator(".st-key-prompt-bar")
    height = bar.bounding_box()["height"]
    page.get_by_role("button", name="The prompt is a text or a conversation").click()
    summary = page.get_by_role("button", name="The conversation")
    expect(summary).to_have_text("user: hello")
    assert bar.bounding_box()["height"] == height  # still one slim line
    summary.click()
    page.get_by_label("Message 1", exact=True).fill("one\ntwo")
    page.get_by_role("button", name="Add a message").click()
    page.get_by_label("Role of message 2").select_option("system")
    page.get_by_label("Message 2", exact=True).fill("<img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Done").click()
    expect(page.locator("p.text")).to_contain_text("[user]one⏎")
    page.wait_for_function("() => new URLSearchParams(location.search).get('chat')?.includes('onerror')")
    expect(summary).to_contain_text("system: <img")
    page.reload()
    expect(page.get_by_role("button", name="The conversation")).to_contain_text("system: <img")
    page.get_by_role("button", name="The prompt is a text or a conversation").click()
    expect(field_of(page)).to_have_value("hello")  # the text is kept beside it


def test_a_conversation_that_grows_too_long_for_an_address_outlives_a_reload(open_page: OpenPage) -> None:
    given = '{"messages":[{"role":"user","content":"%s"}]}'
    content = "a" * (LONGEST - len(given) - 3)
    address = {"tokenization.view": "chat", "form": "chat", "chat.template": "{{ messages[0].content }}"}
    page = open_page(f"/tokenization?lang=en&{urlencode({**address, 'chat': given % content})}")
    page.wait_for_function("() => new URLSearchParams(location.search).has('chat')")
    page.locator(".stToggle, .stCheckbox").filter(has_text="Generation prompt").click()  # the server changes it
    page.wait_for_function("() => !new URLSearchParams(location.search).has('chat')")
    settle(page)
    page.reload()
    expect(page.get_by_role("button", name="The conversation")).to_contain_text(content)
