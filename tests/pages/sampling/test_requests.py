"""A request pasted on the sampling page, and one written from it."""

import json

import pytest

from lmcore.requests import read
from pages.stages.sampling import pasted
from tests.pages.harness import go_to, opener

run = opener("sampling")
BODY = {"temperature": 0.7, "repeat_penalty": 1.2, "api_key": "sk-secret"}


def test_a_pasted_request_is_said_field_by_field_and_taken_over() -> None:
    app = run(prompt="The weather", request_to="vllm")
    app.text_area(key="request.text").input(json.dumps(BODY)).run()
    (told,) = (text.value for text in app.text if "Read as" in text.value)
    assert "vLLM has no field repeat_penalty and ignores it" in told and "secret" not in told
    app.button(key="request.use").click().run()
    assert (app.session_state["engine"], app.session_state["temperature"]) == ("vllm", 0.7)
    assert not app.exception
    assert "secret" not in str(app.query_params)
    assert "request.text" in app.session_state
    assert "request.text" not in go_to(app, "tokenization").session_state  # the text, which holds the key


def test_its_text_becomes_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(pasted.st, "session_state", state)
    monkeypatch.setattr(pasted.knobs, "set_to", lambda chosen: None)
    monkeypatch.setattr(pasted, "_is_chat", lambda request: False)
    pasted._use(read(json.dumps({**BODY, "prompt": "今天天气"})))
    assert (state["prompt"], state["source"], state["form"]) == ("今天天气", "model", None)
    monkeypatch.setattr(pasted, "_is_chat", lambda request: True)
    pasted._use(read('{"messages": [{"role": "user", "content": "Hi"}]}'))
    assert state["form"] == "chat" and '"content":"Hi"' in str(state["chat"])


def test_what_is_no_request_is_said_and_kept() -> None:
    app = run()
    app.text_area(key="request.text").input("{'temperature': 1}").run()
    assert any("is not JSON" in info.value for info in app.info)
    assert app.text_area(key="request.text").value == "{'temperature': 1}"


def test_the_settings_are_written_for_a_server_with_the_distance_where_it_is_not_exact() -> None:
    app = run(prompt="今天天气", temperature="4", top_p="0.95", engine="llama.cpp", write_for="vllm")
    assert any("vLLM cannot give this distribution" in text.value for text in app.text)
    written = json.loads(next(code.value for code in app.code if code.language == "json"))
    assert written["prompt"] == "今天天气" and written["repetition_penalty"] == 1.0
    app = run(prompt="今天天气", temperature="1.5", top_k="40", engine="vllm", write_for="tgi")
    assert any("the same distribution at every position" in text.value for text in app.text)


def test_a_request_written_from_a_conversation_has_its_messages_or_its_text() -> None:
    messages = [{"role": "system", "content": "今天"}, {"role": "user", "content": "天气"}]
    template = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
    address = {"form": "chat", "chat": json.dumps({"messages": messages}), "chat.template": template, "prompt": "typed"}
    for server, field, sent in (("vllm", "prompt", "[今天][天气]"), ("openai", "messages", messages)):
        app = run(write_for=server, **address)
        (body,) = (each.value for each in app.code if each.language == "json")
        assert json.loads(body)[field] == sent, server


def test_what_is_wrong_with_a_request_is_said_in_chinese() -> None:
    app = run(lang="zh", request_to="openai")
    app.text_area(key="request.text").input("curl localhost").run()
    assert any("curl 命令没有正文" in info.value for info in app.info)
    app.text_area(key="request.text").input('{"temperature": 2.5}').run()
    assert any("不接受 temperature 2.5：应为" in text.value and "takes" not in text.value for text in app.text)
