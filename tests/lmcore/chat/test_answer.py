"""An answer's thinking and calls are told from its text, and rendered again they are what the model wrote."""

from __future__ import annotations

import pytest

from lmcore import chat
from lmcore.chat import ChatTemplate
from tests.lmcore.chat.small import TURNS, user

THINKING = "<think>\nTwo and two.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 2}}\n</tool_call>'
TEMPLATE = """
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}
{%- for call in m.tool_calls %}{% if m.content or not loop.first %}{{ '\n' }}{% endif %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def told(answer: str, source: str, begun: str = "") -> list[tuple[str, str, tuple[object, ...]]]:
    found = chat.parts(answer, ChatTemplate(source), begun)
    assert "".join(answer[part.start : part.end] for part in found) == answer
    return [(part.kind, part.text, part.calls) for part in found]


def test_parts_of_answers_as_the_families_write_them():
    call = (("add", {"a": 2, "b": 2}),)
    inside = CALL.removeprefix("<tool_call>").removesuffix("</tool_call>")
    for answer, source, expected in [
        (THINKING + "4" + CALL, TEMPLATE, [("thinking", "\nTwo and two.\n"), ("text", "\n\n4"), ("tool_call", inside)]),
        ("4", TEMPLATE, [("text", "4")]),
        ("", TEMPLATE, []),
        ("<think>not yet", TEMPLATE, [("thinking", "not yet")]),
        ("[TOOL_CALLS]" + inside, "[TOOL_CALLS]", [("tool_call", inside)]),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.add "
            '<|constrain|>json<|message|>{"a": 2, "b": 2}',
            "<|channel|>",
            [("thinking", "Hm."), ("tool_call", '{"a": 2, "b": 2}')],
        ),
    ]:
        found = told(answer, source)
        assert [(kind, text) for kind, text, _calls in found] == expected, answer
        assert all(calls == (call if kind == "tool_call" else ()) for kind, _text, calls in found), answer


def test_marks_that_the_template_does_not_write_are_text():
    assert told(THINKING + CALL, TURNS) == [("text", THINKING + CALL, ())]
    assert [part.kind for part in chat.parts(THINKING, None)] == ["text"]


def test_thinking_that_the_generation_prompt_began():
    begun = "<|im_start|>assistant\n<think>\n"
    assert told("Hm.</think>4", TEMPLATE, begun) == [("thinking", "Hm.", ()), ("text", "4", ())]
    assert told("Hm.", TEMPLATE, begun) == [("thinking", "Hm.", ())]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n", [("add", {"a": "2"})]),
        ("add\n<arg_key>a</arg_key>\n<arg_value>2</arg_value>\n", [("add", {"a": "2"})]),
        ('[{"name": "f", "parameters": {}}, {"name": "g", "arguments": "{\\"x\\": 1}"}]', [("f", {}), ("g", {"x": 1})]),
        ('{"name": "f", "arguments": 3}', []),
        ('{"name": "f"', []),
        ("[" * 9000, []),
        (f'{{"name": "f", "arguments": {{"a": {"9" * 5000}}}}}', []),  # more digits than Python reads
        ('{"name": "f", "arguments": {"a": "' + "x" * 30_000 + '"}}', []),
    ],
)
def test_calls_that_can_and_cannot_be_read(text, calls):
    ((kind, _text, found),) = told(f"<tool_call>{text}</tool_call>", TEMPLATE)
    assert kind == "tool_call" and list(found) == calls


def test_an_answer_in_fields_is_rendered_as_the_model_wrote_it():
    asked = [user("2 + 2?")]
    prompt = chat.render(TEMPLATE, asked).text
    for answer in (THINKING + "4", "4\n" + CALL, CALL + "\n" + CALL, THINKING + CALL, "4 <think"):
        made = chat.message(answer, chat.parts(answer, ChatTemplate(TEMPLATE)))
        again = chat.render(TEMPLATE, [*asked, made], add_generation_prompt=False).text
        assert again == prompt + answer + "<|im_end|>\n", answer
    unread = "<tool_call>add 2 and 2</tool_call>"
    assert chat.message(unread, chat.parts(unread, ChatTemplate(TEMPLATE)))["content"] == unread
