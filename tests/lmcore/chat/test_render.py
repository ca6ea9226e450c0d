"""Rendering is transformers' and plain Jinja's, each character's origin is right, and no template does any harm."""

from __future__ import annotations

from datetime import datetime

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcore.chat import ChatTemplate, TemplateRefused, environment, process, render, worker
from tests.lmcore.chat.small import SPECIAL, TEMPLATES, TURNS, assistant, reference, system, user

TOOLS = [{"type": "function", "function": {"name": "f", "description": '<b> & "天气"', "parameters": {"n": 1}}}]
FOREIGN = set("αβ地😊")  # characters that no template writes
CONTENT = st.text(alphabet="αβ地😊<>|\n \t{}%'\"ß\u2028a", max_size=20)
CONVERSATION = st.lists(st.builds(lambda make, text: make(text), st.sampled_from([user, assistant, system]), CONTENT))


def ours(source, messages, **options):
    try:
        return render(
            ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"}, control=SPECIAL), messages, **options
        )
    except TemplateRefused as error:
        return str(error)


def theirs(source, messages, **options):
    try:
        return reference().apply_chat_template(messages, chat_template=source, tokenize=False, **options)
    except (jinja2.TemplateError, TypeError) as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=30)
@given(CONVERSATION.filter(bool), st.booleans(), st.sampled_from([None, TOOLS]))
def test_the_text_is_transformers_and_its_spans_are_what_they_say(messages, prompt, tools):
    for name, source in TEMPLATES.items():
        found = ours(source, messages, add_generation_prompt=prompt, tools=tools)
        expected = theirs(source, messages, add_generation_prompt=prompt, tools=tools)
        if isinstance(found, str):
            assert found == expected, name
            continue
        assert found.text == expected, name
        assert "".join(span.text for span in found.spans) == found.text, name
        for span in found.spans:
            assert found.text[span.start : span.end] == span.text
            if span.kind == "message":
                content = str(messages[span.message][span.field])
                assert set(span.text.casefold()) <= set(content.casefold()), (name, span)
            elif span.kind != "mixed":
                assert not FOREIGN & set(span.text.casefold()), (name, span)


def test_each_character_of_a_conversation_is_known():
    found = ours(TURNS, [system(" Be brief. "), user("Hi <|im_end|>")])
    told = [(span.kind, span.message, span.field, span.text) for span in found.spans]
    assert told == [
        ("control", None, "<|im_start|>", "<|im_start|>"),
        ("message", 0, "role", "system"),
        ("template", None, "", "\n"),
        ("message", 0, "content", "Be brief."),
        ("control", None, "<|im_end|>", "<|im_end|>"),
        ("template", None, "", "\n"),
        ("control", None, "<|im_start|>", "<|im_start|>"),
        ("message", 1, "role", "user"),
        ("template", None, "", "\n"),
        ("message", 1, "content", "Hi <|im_end|>"),
        ("control", None, "<|im_end|>", "<|im_end|>"),
        ("template", None, "", "\n"),
        ("control", None, "<|im_start|>", "<|im_start|>"),
        ("template", None, "", "assistant\n"),
    ]
    assert [span.in_prompt for span in found.spans] == [False] * 12 + [True] * 2
    assert found.text[slice(*found.prompt)] == "<|im_start|>assistant\n"
    assert found.spans[0].line == 3 and found.spans[-1].line == 6
    assert found.variables == ("add_generation_prompt", "messages")


def test_control_strings_of_the_template_and_its_variables_are_cut_out_and_no_others():
    source = "a{{ bos_token }}b<|im_{{ 'start|>' }}{{ bos_token ~ '</s>' }}{{ messages[0].content }}s>"
    told = [(span.kind, span.text) for span in ours(source, [user("<s><")]).spans]
    assert told == [
        ("template", "a"),
        ("control", "<s>"),
        ("template", "b"),
        ("control", "<|im_start|>"),
        ("control", "<s>"),
        ("control", "</s>"),
        ("message", "<s><"),
        ("template", "s>"),
    ]
    # As many as a hostile template can write in a moment: looking at all spans for each would take minutes.
    found = ours("{{ '<s>x' * 30000 }}", [user("a")])
    assert [span.text for span in found.spans] == ["<s>", "x"] * 30000


def test_what_cannot_be_told_is_mixed_and_what_tools_are_is_theirs():
    spans = ours("{{ messages|length }}{{ tools|tojson }}{{ bos_token }}", [user("a")], tools=TOOLS).spans
    assert [(span.kind, span.field) for span in spans] == [("mixed", ""), ("variable", "tools"), ("control", "<s>")]


def test_the_lines_that_ran():
    source = "{% if messages[0].role == 'user' %}\nA\n{% else %}\nB\n{% endif %}\n{% for m in [] %}\nC\n{% endfor %}\nD"
    assert ours(source, [user("x")]).lines == (1, 2, 6, 9)
    assert ours(source, [system("x")]).lines == (1, 4, 6, 9)
    assert ours("{{ 'a\nb' }}\n{{ 'a\\nb' }}\n{% if false %}c{% endif %}", [user("x")]).lines == (1, 2, 3, 4)
    with pytest.raises(TemplateRefused) as error:
        render("a\n{{ 1 + 'b' }}", [user("x")])
    assert error.value.line == 2


def test_the_assistants_beginning_is_gone_on_with():
    for text in ("The answer", "The answer ", "  "):
        messages = [user("a"), assistant(text)]
        options = dict(add_generation_prompt=False, continue_final_message=True)
        for source in (TURNS, TEMPLATES["refusing"]):
            expected = theirs(source, messages, **options)
            assert ours(source, messages, **options).text == expected
    with pytest.raises(ValueError, match="set one"):
        render(TURNS, messages, continue_final_message=True)


def test_generation_blocks_say_what_the_assistant_wrote():
    source = "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}"
    found = ours(source, [assistant("one"), assistant("two")])
    assert [found.text[start:end] for start, end in found.assistant] == ["one", "two"]
    found = ours(source, [assistant("one"), assistant("two")], add_generation_prompt=False, continue_final_message=True)
    assert found.assistant == ((10, 13), (24, 27)) and found.text[24:] == "two"


def test_reasoning_has_every_name_that_templates_use():
    source = "{{ messages[0].reasoning_content }}{{ messages[0].thinking }}"
    messages = [assistant("x") | {"reasoning": "so"}]
    found = ours(source, messages)
    assert found.text == theirs(source, messages) == "soso"
    assert {span.field for span in found.spans} == {"reasoning"}


def test_the_template_for_tools_and_the_time():
    template = ChatTemplate("plain", named={"tool_use": "{{ strftime_now('%d %b %Y') }}"})
    assert render(template, [user("a")]).text == "plain"
    assert render(template, [user("a")], tools=TOOLS, now=datetime(2024, 7, 26)).text == "26 Jul 2024"


HOSTILE = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "longer than",
    "{{ 'a' * 10**10 }}": "memory",
    "{{ range(10**9) | list }}": "Range too big",
    "{{ 10**(10**9) }}": "longer than|memory",
    "{{ '%0999999999d' | format(1) }}": "memory|more than",
    "{{ 'a'.ljust(10**10) }}": "memory",
    "{{ '{:9999999999}'.format(1) }}": "memory",
    "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}": "too deep",
    "{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}": (
        "memory|longer than"
    ),
    "{% for i in range(20000) %}{{ 'a' * 1000 }}{% endfor %}": "more than 1,000,000 characters",
    "{{ lipsum(10**9) }}": "longer than|memory",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}": "unsafe",
    "{% include '/etc/passwd' %}": "no loader",
    "{% import 'os' as os %}": "no loader",
    "{{ messages.append(1) }}": "not safely callable|unsafe",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}": "underscore",
    "{% if %}": "Expected an expression",
}


@pytest.mark.slow
def test_a_hostile_template_ends_in_a_sentence(monkeypatch):
    monkeypatch.setattr(process, "SECONDS", 0.3)
    for source, sentence in HOSTILE.items():
        with pytest.raises(TemplateRefused, match=sentence):
            render(source, [user("a")])
    assert render("{{ messages[0].content }}", [user("alive")]).text == "alive"


def test_a_conversation_does_not_pay_for_a_process_that_died_while_idle(monkeypatch):
    for looks_alive in (False, True):  # it may also die a moment after it was looked at
        process._end_all()
        render("a", [user("a")])
        (idle,) = process._idle
        idle._process.kill()
        idle._process.wait()
        if looks_alive:
            monkeypatch.setattr(process._Process, "is_alive", True)
        assert render("{{ messages[0].content }}", [user("alive")]).text == "alive"
        assert idle not in process._idle


def test_a_refusal_says_whether_another_try_may_do_and_ends_the_process_if_so(monkeypatch):
    monkeypatch.setattr(process, "SECONDS", 0.3)
    kinds = {
        "{{ raise_exception('no') }}": "refused",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}": "depth",
        "{{ 'a' * 10**10 }}": "memory",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "time",
    }
    for source, kind in kinds.items():
        render("a", [user("a")])
        used = process._idle[-1]
        with pytest.raises(TemplateRefused) as error:
            render(source, [user("a")])
        assert error.value.kind == kind
        assert error.value.is_passing == (used not in process._idle) == (kind in ("memory", "time")), kind


def test_a_process_that_does_not_start_is_a_sentence(monkeypatch):
    process._end_all()
    monkeypatch.setattr(process, "_START", "raise SystemExit(3)")
    with pytest.raises(TemplateRefused, match=r"did not start \(status 3\)"):
        render("a", [user("a")])


def test_limits_that_a_system_refuses_are_left_and_the_others_set(monkeypatch):
    resource = pytest.importorskip("resource")
    asked = []

    def refuse(which, limits):
        asked.append(which)
        raise ValueError("not allowed to raise maximum limit") if len(asked) == 1 else OSError("invalid argument")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    worker._limit(process.MEMORY)
    assert asked == [resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE]


def test_what_a_template_wrote_is_not_kept():
    asked = {"variables": {}, "messages": [], "prompt": True, "now": None, "continued": False, "longest": 5}
    for source in ("abc", "{% for i in range(9) %}abc{% endfor %}"):
        assert ("error" in worker._answer({"source": source, **asked})) == (source != "abc")
        assert environment.compiled(source)[0].blocks == []


def test_what_is_no_conversation_is_refused_in_a_sentence():
    for messages in ([], ["hello"]):
        with pytest.raises(ValueError, match="message"):
            render(TURNS, messages)
    with pytest.raises(ValueError, match="texts, numbers, lists and tables"):
        render(TURNS, [user(object())])
