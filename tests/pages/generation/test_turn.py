"""Generation in a conversation: it stops at the end of the turn, the answer becomes a message, and it goes on."""

from __future__ import annotations

import json

import pytest

import lmcore
from lmcore import chat
from tests.pages.generation.page import current, press, run
from tests.pages.harness import clean, printed, told, well

# The small world's one control token ends a turn here, as an end of turn does in a chat model.
TEMPLATE = "{% for m in messages %}{{ m.content }}<|endoftext|>{% endfor %}"
MESSAGES = [{"role": "user", "content": "今天天气"}]
ADDRESS = {
    "form": "chat",
    "chat": json.dumps({"messages": MESSAGES}),
    "chat.template": TEMPLATE,
    "max_new_tokens": "60",
    "seed": "6",  # its text ends by itself
}


def messages(app) -> list[dict[str, str]]:
    return json.loads(app.session_state["chat"])["messages"]


@pytest.mark.slow
def test_an_answer_becomes_a_message_and_the_next_message_is_answered_at_once() -> None:
    app = press(run(**ADDRESS), "run")
    first = current(app)
    lm = lmcore.load()
    prompt = chat.encode(lm, MESSAGES, template=TEMPLATE).ids
    assert list(first.tree.prompt_ids) == prompt
    assert first.end == "stop token" and first.node.token == b"<|endoftext|>"
    ids = [int(line.split()[1]) for line in printed(app).splitlines()]
    assert ids == [step.token_id for step in first.tree.path(first.node)]

    answer = lm.tokenizer.decode(ids[:-1])
    clean(app.chat_input(key="turn.next").set_value("我喜欢\n吗").run())
    said = [*MESSAGES, {"role": "assistant", "content": answer}, {"role": "user", "content": "我喜欢\n吗"}]
    assert messages(app) == said
    second = current(app)
    assert second is not first and list(second.tree.prompt_ids) == chat.encode(lm, said, template=TEMPLATE).ids
    while second.running:
        pass
    assert second.node.depth > 0  # it began by itself

    clean(app.run())
    app.button(key="turn.keep").click().run()
    assert messages(app)[:3] == said and messages(app)[3]["role"] == "assistant"


def test_a_beginning_that_is_gone_on_with_is_completed() -> None:
    begun = [*MESSAGES, {"role": "assistant", "content": "很"}]
    given = {**ADDRESS, "chat": json.dumps({"messages": begun, "continued": True})}
    app = press(run(**given), "step")
    drawn = current(app).node.token.decode()
    app.button(key="turn.keep").click().run()
    assert messages(app) == [*MESSAGES, {"role": "assistant", "content": "很" + drawn}]


@pytest.mark.slow
def test_an_answers_thinking_and_calls_are_shown_and_become_fields() -> None:
    # What the small world writes is put between a template's marks: the template writes the same from the fields.
    template = """{% for m in messages %}{% if m.role == 'assistant' %}<think>{{ m.reasoning_content }}</think>
{%- endif %}{{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}<think>{% endif %}"""
    app = press(run(**ADDRESS | {"chat.template": template}), "run")
    answer = lmcore.load().tokenizer.decode([int(line.split()[1]) for line in printed(app).splitlines()])
    thought = answer.removesuffix("<|endoftext|>")
    (box,) = [each for each in app.expander if each.label.startswith("Thinking")]
    assert box.text[0].value == thought.strip()
    app.button(key="turn.keep").click().run()
    assert messages(app)[-1] == {"role": "assistant", "content": "", "reasoning_content": thought}
    assert "</think>" in app.session_state["generation.current"][1]


def test_an_earlier_message_is_answered_differently_and_both_branches_are_seen() -> None:
    said = [*MESSAGES, {"role": "assistant", "content": "很好"}, {"role": "user", "content": "我喜欢"}]
    app = run(**ADDRESS | {"chat": json.dumps({"messages": said})})
    rows = [button for button in app.button if button.key.startswith("turn.message.")]
    assert [row.label for row in rows] == ["`user` `今天天气`", "`assistant` `很好`", "`user` `我喜欢`"]
    clean(app.button(key="turn.message.0").click().run())
    assert messages(app) == MESSAGES
    press(app, "step")
    other = current(app).node.token.decode()
    app.button(key="turn.keep").click().run()
    assert messages(app) == [*MESSAGES, {"role": "assistant", "content": other}]
    clean(app.run())
    labels = [button.label for button in app.button if button.key.startswith("turn.message.")]
    assert labels == [
        "`user` `今天天气`",
        "↳ `assistant` `很好`",
        "↳ `user` `我喜欢`",
        f"↳ `assistant` `{other}`",
    ]
    clean(app.button(key="turn.message.1").click().run())  # back to the first answer, and on from it
    clean(app.chat_input(key="turn.after").set_value("小明").run())
    assert messages(app) == [*said[:2], {"role": "user", "content": "小明"}]
    labels = [button.label for button in clean(app.run()).button if button.key.startswith("turn.message.")]
    assert labels[2:4] == ["↳ ↳ `user` `我喜欢`", "↳ ↳ `user` `小明`"]


def test_from_a_message_that_the_template_refuses_the_reader_goes_on_to_another() -> None:
    template = "{% if messages[-1].role == 'system' %}{{ raise_exception('Nobody asks.') }}{% endif %}我喜欢"
    said = [{"role": "system", "content": "x"}, *MESSAGES]
    tools = json.dumps([{"type": "function", "function": {"name": "look"}}])
    app = run(**ADDRESS | {"chat": json.dumps({"messages": said, "tools": tools}), "chat.template": template})
    app = well(app.button(key="turn.message.0").click().run())
    assert "Nobody asks." in told(app)
    assert json.loads(app.session_state["chat"])["tools"] == tools
    app = clean(app.button(key="turn.message.1").click().run())
    assert messages(app) == said
