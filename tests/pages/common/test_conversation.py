"""The prompt as a conversation: what the session holds is always read again, whoever wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

import lmcore
from pages.common import conversation
from tests.pages.harness import figures, open_page, told, well

TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"


def in_a_session(script: Callable[[], None]) -> None:
    """Run a function as a page; a failed assertion in it fails the test."""
    well(AppTest.from_function(script).run())


def test_what_is_written_in_a_session_has_no_length_that_reading_refuses() -> None:
    def script() -> None:
        import streamlit as st

        from pages.common import conversation

        st.session_state["prompt"] = "a" * (conversation.MOST_CHARACTERS + 1)
        conversation.switch(True)
        assert conversation.current().messages[0]["content"] == st.session_state["prompt"]
        messages = ({"role": "user", "content": "a"},) * conversation.MOST_MESSAGES
        conversation.take(conversation.Conversation(messages))
        conversation.append({"role": "user", "content": "b"})
        conversation.append({"role": "user", "content": "c"})
        assert len(conversation.current().messages) == len(messages) + 2

    in_a_session(script)


def test_an_address_has_limits() -> None:
    message = {"role": "user", "content": "a"}
    for messages in ([message] * (conversation.MOST_MESSAGES + 1), [{**message, "content": "a" * 100_000}]):
        given = json.dumps({"messages": messages})
        app = open_page("about", prompt="我", **{"form": "chat", "chat": given})
        assert "chat" not in app.session_state


def test_half_a_character_from_an_address_or_a_template_stops_no_run() -> None:
    given = json.dumps({"messages": [{"role": "user", "content": "a\ud800"}]})
    address = {"form": "chat", "chat": given, "tokenization.view": "chat", "chat.template": TEMPLATE}
    app = open_page("tokenization", **address)
    assert conversation.Conversation.parse(app.session_state["chat"]).messages[0]["content"] == "a\ufffd"
    app = open_page("tokenization", **(address | {"chat.template": "{{ '\\ud800' }}"}))
    assert "half of a surrogate pair" in told(app)


def test_a_conversation_is_there_again_after_it_was_a_text() -> None:
    def script() -> None:
        import streamlit as st

        from pages.common import bar, conversation

        st.session_state["prompt"] = "typed"
        given = {"messages": [{"role": "system", "content": "kept"}, {"role": "user", "content": "b"}]}
        bar._take_conversation(None)
        bar._take_conversation(given)
        assert st.session_state["form"] == "chat"
        assert list(conversation.current().messages) == given["messages"]

    in_a_session(script)


def test_a_template_typed_while_the_prompt_is_a_text_is_in_the_address() -> None:
    app = open_page("tokenization", **{"prompt": "我", "tokenization.view": "chat", "chat.template": TEMPLATE})
    assert app.session_state["link.address"]["chat.template"] == TEMPLATE


def test_another_model_reads_the_conversation_as_the_chosen_one_does() -> None:
    def script() -> None:
        import json

        import streamlit as st

        import lmcore
        from pages.stages.position.common import tokens_of

        st.session_state["model"], st.session_state["form"] = "small-world", "chat"
        st.session_state["chat"] = json.dumps({"messages": [{"role": "user", "content": "我"}]})
        st.session_state["chat.template"] = "<|endoftext|>{{ messages[0].content }}"
        wanted = lmcore.builtin.tokenizer().encode("<|endoftext|>我", special_tokens=True).ids
        for name in ("small-world", "small-world-alibi"):
            assert tokens_of(name)[1] == wanted

    in_a_session(script)
    content = "小明喜欢小红，"
    chat = {
        "form": "chat",
        "chat": json.dumps({"messages": [{"role": "user", "content": content}]}),
        "chat.template": "<|endoftext|>{{ messages[0].content }}",
    }
    order = open_page("position", **{**chat, "position.view": "order", "position.pair": "prompt"})
    assert told(order).count("<|endoftext|>") >= 2  # in A and in B, where it is exchanged as one token
    experts = open_page("blocks", **{**chat, "blocks.view": "experts"})
    n_tokens = len(lmcore.builtin.tokenizer().encode("<|endoftext|>" + content, special_tokens=True).ids)
    assert figures(experts)[0].data[0].z["shape"].split(",")[1].strip() == str(n_tokens)
