"""A class in real browsers: a teacher and two students, votes that are changed, shown, and kept over a reload."""

from __future__ import annotations

import csv
import io
import re

from playwright.sync_api import Browser, Page, expect

from tests.bench.first_screen import measured
from tests.browser.conftest import Server, settle

PHONE = {"width": 390, "height": 844}


def join(browser: Browser, server: Server, code: str) -> Page:
    page = browser.new_context(locale="en-US", viewport=PHONE, has_touch=True).new_page()
    page.goto(f"{server.url}/?class={code}&lang=en")
    expect(page.get_by_text("You are in the class.", exact=True)).to_be_visible()
    return page


def test_a_teacher_and_two_students(browser: Browser, server: Server) -> None:
    teacher = browser.new_context(locale="en-US", viewport={"width": 1366, "height": 768}).new_page()
    teacher.goto(f"{server.url}/lessons?lang=en&lessons.teacher=1")
    teacher.locator(".st-key-lessons-class-1-tokens button").click()
    teacher.get_by_role("button", name="Begin: 1 From text to tokens").wait_for()
    expect(teacher).to_have_url(re.compile("class=[A-Z0-9]{8}"))
    code = re.findall("class=([A-Z0-9]{8})", teacher.url)[0]
    students = [join(browser, server, code) for _n in range(2)]
    expect(teacher.get_by_text("2 here")).to_be_visible()
    teacher.get_by_role("button", name="Begin: 1 From text to tokens").click()
    for page, choice in zip(students, ("One: a word is a token", "Twelve, one for each letter"), strict=True):
        page.locator("label.choice", has_text=choice).tap()
        expect(page.get_by_text("Your answer counts.")).to_be_visible()
    expect(teacher.get_by_text("2 answered")).to_be_visible()
    expect(teacher.locator(".count").first).to_be_hidden()  # nobody is swayed
    teacher.get_by_role("button", name="Show the bars").click()
    expect(teacher.locator(".count")).to_have_text(["1 · 50 %", "0 · 0 %", "1 · 50 %"])
    students[0].locator("label.choice").nth(1).tap()
    expect(teacher.locator(".count")).to_have_text(["0 · 0 %", "1 · 50 %", "1 · 50 %"])  # counted once
    students[0].reload()
    expect(students[0].locator("label.choice input").nth(1)).to_be_checked()
    for page in (teacher, *students):
        expect(page.get_by_role("heading", name="Tokenization")).to_have_count(0)
    teacher.get_by_role("button", name="Reveal the answer").click()
    for page in (teacher, *students):
        expect(page.get_by_text("Measured just now: 10.")).to_be_visible()
        expect(page.get_by_role("heading", name="Tokenization")).to_be_visible()
        picture = measured(page).picture
        assert picture is not None and picture[0] < page.viewport_size["height"] - 60, picture  # on the first screen
    settle(teacher)
    teacher.get_by_role("button", name="Class", exact=True).click()
    for _try in range(3):  # a run that ends meanwhile takes the file away
        with teacher.expect_download() as saved:  # made in a thread of the server, which has to find the session
            teacher.get_by_role("button", name="Answers to each question").click()
        if saved.value.failure() is None:
            break
    counts = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8-sig"))))
    assert sum(row["right"] == "True" for row in counts if row["step"] == "1") == 1, counts
    teacher.keyboard.press("Escape")
    teacher.get_by_role("button", name="Next step").click()
    for page in (teacher, *students):
        expect(page.get_by_text("step 2 of 6")).to_be_visible()
    expect(teacher.get_by_role("button", name="Show the bars")).to_be_visible()  # hidden again at each question
    for page in (teacher, *students):
        page.context.close()
