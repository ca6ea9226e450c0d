"""Two texts of one conversation: each row is the same place in both, and the rows make up both texts."""

from __future__ import annotations

import random

from lmcore import chat
from tests.lmcore.chat.small import TEMPLATES, TURNS, assistant, chat_model, system, user

TALK = [system("Be brief."), user("Hi  you"), assistant("Yes?"), user("Hi")]
PLAIN = """{{ bos_token }}{% for m in messages if m.role != 'system' %}
{% if m.role == 'assistant' %}model{% else %}{{ m.role }}{% endif %}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}model:{% endif %}"""


def whole(rows: tuple[chat.AlignedRow, ...], text: str, side: str) -> str:
    return "".join(text[slice(*getattr(row, side))] for row in rows if getattr(row, side) is not None)


def test_the_same_field_is_in_the_same_row():
    left, right = chat.render(TURNS, TALK), chat.render(PLAIN, TALK, bos_token="<s>")
    rows = chat.aligned(left, right)
    assert whole(rows, left.text, "left") == left.text and whole(rows, right.text, "right") == right.text
    fields = [
        (row.message, row.left and left.text[slice(*row.left)], row.right and right.text[slice(*row.right)])
        for row in rows
        if row.field
    ]
    assert fields == [(0, "Be brief.", None), (1, "Hi  you", "Hi  you"), (2, "Yes?", "Yes?"), (3, "Hi", "Hi")]
    assert [row.is_same for row in rows if row.field] == [False, True, True, True]
    (prompt,) = [row for row in rows if row.in_prompt]
    assert right.text[slice(*prompt.right)] == "model:"


def test_a_template_beside_itself_differs_nowhere():
    for source in TEMPLATES.values():
        try:
            found = chat.render(source, TALK[1:], bos_token="<s>")
        except chat.TemplateRefused:
            continue
        assert all(row.is_same for row in chat.aligned(found, found)) and all(
            row.is_same for row in chat.aligned(found, found.text)
        )


def test_a_text_alone_is_laid_beside_a_rendering():
    left = chat.render(TURNS, TALK)
    for other in (
        left.text.replace("Be brief.", "Be very brief."),
        "<s>" + left.text,
        left.text.replace("<|im_start|>assistant\n", "model: "),
        "",
        "x" * 50_000,
        " ".join(random.Random(0).choices("abc ", k=5_000)),
    ):
        rows = chat.aligned(left, other)
        assert whole(rows, left.text, "left") == left.text and whole(rows, other, "right") == other
    rows = chat.aligned(left, left.text.replace("Be brief.", "Be very brief."))
    assert [(row.message, row.field) for row in rows if not row.is_same] == [(0, "content")]


def test_each_token_is_in_one_row():
    lm = chat_model(TURNS)
    left, right = chat.render(TURNS, TALK), chat.render(PLAIN, TALK, bos_token="<s>")
    for side, rendered in (("left", left), ("right", right)):
        found = chat.encode_rendered(lm.tokenizer, rendered)
        rows = chat.aligned(left, right)
        tokens = [index for row in rows for index in chat.tokens_in(found, getattr(row, side))]
        assert tokens == list(range(len(found)))
