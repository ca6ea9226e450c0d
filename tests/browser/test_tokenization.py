"""The tokenization page in a real browser: a megabyte pasted, vocabularies trained and searched, a token followed."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PASTE, OpenPage, settle

WAIT = 90_000  # milliseconds; a machine with other work to do is slow, not wrong


def chips(page: Page) -> Locator:
    return page.locator(".comparison .chip")


def paste(page: Page, text: str) -> None:
    field = page.get_by_label("A long text")
    page.get_by_role("button", name="Clear the text").click(timeout=WAIT)
    settle(page)
    field.evaluate(PASTE, text)
    expect(page.get_by_text(f"{len(text):,} characters, {len(text.encode()):,} bytes.")).to_be_visible(timeout=WAIT)
    settle(page)


@pytest.mark.parametrize(
    "text",
    [("The weather today is nice. 今天天气😊\n" * 30_000)[:820_000], "a" * 100_000, "^" * 1_000_000],
    ids=["a megabyte", "letters", "marks"],
)
def test_a_long_text_is_pasted_counted_and_drawn_in_part(open_page: OpenPage, text: str) -> None:
    page = open_page("/tokenization?tokenization.view=compare&tokenization.text=pasted&vocabularies=small-world,bytes")
    paste(page, text)
    assert 0 < chips(page).count() < 2_000
    assert len(page.get_by_label("A long text").input_value()) <= 20_000
    expect(page.get_by_text(f"{len(text):,} characters are stored")).to_be_visible()
    first = chips(page).first.get_attribute("title")
    slider = page.get_by_role("slider", name="Show from character")
    slider.focus()
    slider.press("End")
    settle(page)
    assert chips(page).count() > 0 and first
    page.get_by_role("link", name="Embedding lookup").first.click()
    settle(page)
    page.go_back()
    expect(page.get_by_text(f"{len(text):,} characters are stored")).to_be_visible(timeout=WAIT)


def test_tokens_over_the_same_bytes_stand_above_one_another(open_page: OpenPage) -> None:
    page = open_page("/tokenization?tokenization.view=compare&vocabularies=small-world,characters,bytes&prompt=我😊")
    expect(page.locator(".stretch .whole")).to_have_text(["我", "😊"], timeout=WAIT)
    for stretch in page.locator(".stretch").all():
        whole = stretch.bounding_box()
        cells = [cell.bounding_box() for cell in stretch.locator(".cell").all()]
        assert whole and all(cells)
        rows = sorted({round(cell["y"]) for cell in cells if cell})
        for y in rows:  # each row fills the stretch from end to end
            row = [cell for cell in cells if cell and round(cell["y"]) == y]
            assert abs(min(cell["x"] for cell in row) - whole["x"]) < 3
            assert abs(max(cell["x"] + cell["width"] for cell in row) - whole["x"] - whole["width"]) < 3


def test_hostile_text_stays_text(open_page: OpenPage) -> None:
    page = open_page("/tokenization?tokenization.view=compare&vocabularies=small-world&tokenization.text=pasted")
    paste(page, '"><img src=x onerror="document.title=1"><script>document.title=2</script> :red[x] $y$ ' * 300)
    assert page.locator(".comparison img, .comparison script").count() == 0
    assert not page.title().isdigit()


def test_a_vocabulary_is_trained_on_a_pasted_text_and_its_merges_watched(open_page: OpenPage) -> None:
    page = open_page("/tokenization?tokenization.view=train&vocabularies=bytes&prompt=banana")
    page.get_by_role("button", name="Clear the text").click(timeout=WAIT)
    settle(page)
    page.get_by_label("A long text").evaluate(PASTE, "banana bandana " * 3_000)
    slider = page.locator(".replay input")
    expect(slider).to_be_visible(timeout=WAIT)
    settle(page)
    slider.press("Home")
    slider.press("ArrowRight")
    expect(page.locator(".replay .sentence")).to_contain_text("a + n → an", timeout=WAIT)
    expect(page.locator(".replay .sentence")).to_contain_text("257 tokens in the vocabulary")
    expect(chips(page).get_by_text("an", exact=True).first).to_be_visible(timeout=WAIT)


def test_a_token_found_in_the_vocabulary_is_followed_to_its_neighbours(open_page: OpenPage) -> None:
    page = open_page("/tokenization?tokenization.view=vocabulary&vocabulary.query=天气")
    page.locator(".groups .chip").first.click()
    settle(page)
    token_id = page.locator(".groups .chip .id").first.inner_text()
    page.get_by_role("link", name=f"(id {token_id}) in the embedding").click()
    settle(page)
    assert "/embedding" in page.url
    expect(page.get_by_text("Length of this row").first).to_be_visible(timeout=WAIT)


def test_a_chip_is_followed_to_its_row(open_page: OpenPage) -> None:
    page = open_page("/tokenization?prompt=今天天气")
    page.locator(".groups .chip").nth(1).click()
    settle(page)
    page.get_by_role("link", name="(token 1) in the embedding").click()
    settle(page)
    assert "/embedding" in page.url and "position=1" in page.url
