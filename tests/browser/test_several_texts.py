"""Texts from a file, scored in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, settle


def test_a_csv_file_is_scored(open_page: OpenPage) -> None:
    page = open_page("/logits?logits.view=several")
    csv = 'id,text\n1,"The king, the queen"\n2,好\n'.encode()
    page.locator("input[type=file]").set_input_files({"name": "texts.csv", "mimeType": "text/csv", "buffer": csv})
    expect(page.get_by_text("2 texts")).to_be_visible()
    page.get_by_role("button", name="Score the texts").click()
    settle(page)
    expect(page.get_by_text("Line 3: a single token")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("4")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    text = download.value.path().read_text("utf-8-sig")
    assert text.splitlines()[0].startswith("Line,Text,Tokens,Loss") and '2,"The␣king,␣the␣queen",5,' in text
