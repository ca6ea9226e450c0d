"""Words that were replaced once and should not come back: on screen in English, and in its Chinese translation."""

import re
import tomllib

import pytest

from pages.lessons.reading import OWN
from pages.locale.catalogues import po_files, read_catalogue, source_messages

ENGLISH = {  # what not to write: what to write
    r"\bWhose ids\b": "name the two vocabularies",
    r"\bwhat keeps the tie\b": "operations that keep or break tying",
    r"\bgone on from\b": "continued",
    r"\btells? no order\b": "cannot tell the order",
    r"\b(one|line|row|number|step|token|plane) a (token|row|line|column|block|head|second)\b": "one per token",
    r"\bforesee[ns]?\b|\bforesaw\b": "predict",
    r"\bencircled?\b": "select",
    r"\blikeliest\b": "most probable",
    r"\bunder glass\b": "in detail",
    r"\bfuller (its|the) colour\b|\bthe fuller\b": "the darker the colour",
}
CHINESE = {
    "您": "你",
    "热图": "热力图",
    "纳特": "奈特",
    "惊异度": "自信息",
    "惊讶度": "自信息",
    "有效词表": "有效候选数",
    "流传": "教程中的",
    "语法": "文法",
    "瞎猜": "随机猜测",
}


def english() -> list[str]:
    messages = set().union(*source_messages().values())
    forms = [form for message in messages for form in ([message] if isinstance(message, str) else message)]
    return forms + [text for text in lesson_texts("en")]


def chinese() -> list[str]:
    found = []
    for path in po_files("zh"):
        for message in read_catalogue(path):
            if message.id:
                found += [message.string] if isinstance(message.string, str) else list(message.string)
    return found + lesson_texts("zh")


def lesson_texts(language: str) -> list[str]:
    """Return the texts of the project's own lessons in a language."""

    def texts(value: object) -> list[str]:
        if isinstance(value, list):
            return [text for each in value for text in texts(each)]
        if isinstance(value, dict):
            own = [value[language]] if isinstance(value.get(language), str) else []
            return own + [text for each in value.values() for text in texts(each)]
        return []

    return [text for path in sorted(OWN.glob("*.toml")) for text in texts(tomllib.loads(path.read_text("utf-8")))]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ENGLISH)
def test_english_on_screen_is_plain(wrong: str) -> None:
    assert [text for text in english() if re.search(wrong, text, re.IGNORECASE)] == [], f"write: {ENGLISH[wrong]}"


@pytest.mark.parametrize("wrong", CHINESE)
def test_chinese_has_the_terms_of_textbooks(wrong: str) -> None:
    assert [text for text in chinese() if re.search(wrong, text)] == [], f"write: {CHINESE[wrong]}"


def test_lessons_are_read() -> None:
    assert any("softmax" in text for text in lesson_texts("zh")) and any(
        "softmax" in text for text in lesson_texts("en")
    )
