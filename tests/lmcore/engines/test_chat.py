"""What a server makes of a conversation is asked in its own way, and is what its template and tokenizer give."""

from __future__ import annotations

import pytest

import lmcore
from lmcore import chat
from lmcore.engines.config import EngineConfig
from lmcore.engines.engine import Engine
from lmcore.engines.errors import EngineError
from tests.engines.small_server import Behaviour, serving

MESSAGES = [{"role": "user", "content": "我喜欢"}]


def asked(behaviour: Behaviour, messages=MESSAGES, **options):
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        try:
            return engine.rendered(messages, **options)
        finally:
            engine.close()


@pytest.mark.slow
def test_a_servers_rendering():
    lm, template = lmcore.load("small-world"), Behaviour().template + "{{ mood }}"
    ids = tuple(chat.encode(lm, MESSAGES, template=template, mood="!").ids)
    text = chat.render(template, MESSAGES, mood="!").text
    assert asked(Behaviour(chats="llama-server", template=template), mood="!") == chat.Elsewhere("Tiny", text, ids)
    found = asked(Behaviour(chats="vllm", template=template), mood="!")
    assert (found.text, found.ids) == (lm.tokenizer.decode(ids), ids)
    found = asked(Behaviour(chats="llama-server", template=template, begins_with=(0,)), mood="!")
    assert found.ids == (0, *ids)  # put in front of what the template wrote


@pytest.mark.slow
def test_a_server_that_does_not_tell_and_one_that_refuses():
    assert asked(Behaviour(names="text")) is None
    refusing = "{{ raise_exception('Not me.') }}"
    for chats in ("vllm", "llama-server"):
        with pytest.raises(EngineError) as refused:
            asked(Behaviour(chats=chats, template=refusing))
        assert "Not me." in refused.value.detail
