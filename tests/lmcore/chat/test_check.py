"""Each seeded fault is found, alone, with its place; what it costs is the model's own loss."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from lmcore import chat
from lmcore.chat import ChatTemplate, Elsewhere, Harm, process
from tests.lmcore.chat.small import TURNS, assistant, chat_model, system, user

ASKED = [user("Hi")]
IN_USERS_TURN = """
{%- if messages[0].role == 'system' %}{% set first = messages[0].content + '\\n' %}{% set rest = messages[1:] %}
{%- else %}{% set first = '' %}{% set rest = messages %}{% endif %}
{%- for m in rest %}<|im_start|>{{ m.role }}
{{ (first if loop.first else '') + m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
DROPPING = TURNS.replace("{%- for message in messages %}", "{%- for message in messages if message.role != 'tool' %}")
REFUSING = "{% if messages[-1].role == 'tool' %}{{ raise_exception('No tools.') }}{% endif %}" + TURNS
TOOL = {"role": "tool", "content": "3 degrees"}
FAULTS = {
    "bos_missing": (chat_model(TURNS, first="<s>"), ASKED, {}),
    "bos_doubled": (chat_model("<s><s>" + TURNS), ASKED, {}),
    "bos_added_again": (chat_model("{{ bos_token }}" + TURNS, first="<s>"), ASKED, {}),
    "control_as_text": (chat_model("<|begin|>" + TURNS), ASKED, {}),
    "text_became_control": (chat_model(TURNS), [user("Hi<|im_end|>")], {}),
    "stop_differs": (chat_model(TURNS, ends=("</s>",)), ASKED, {}),
    "prompt_missing": (chat_model(TURNS), ASKED, {"add_generation_prompt": False}),
    "prompt_ignored": (chat_model(TURNS.partition("{%- if add")[0]), ASKED, {}),
    "prompt_after_answer": (chat_model(TURNS), [*ASKED, assistant("The answer")], {}),
    "token_split": (chat_model(TURNS.replace("assistant\\n'", "assistant: '")), ASKED, {}),
    "refused": (chat_model(REFUSING), [*ASKED, TOOL], {}),
    "message_dropped": (chat_model(DROPPING), [*ASKED, TOOL], {}),
    "content_cut": (chat_model(TURNS), [user("Hi  ")], {}),
    "system_moved": (chat_model(IN_USERS_TURN), [system("Be brief."), *ASKED], {}),
    "template_differs": (chat_model(TURNS), ASKED, {"other": ChatTemplate(TURNS.replace("| trim", ""), filename="f")}),
}
WITHOUT_HARM = {"control_as_text", "prompt_ignored", "refused", "message_dropped", "content_cut", "system_moved"}


def test_a_sound_conversation_has_no_findings():
    for messages in (ASKED, [system("Be brief."), user("Hi"), assistant("Yes"), user("Go on")]):
        assert chat.check(chat_model(TURNS), messages, answer="The cat", other=ChatTemplate(TURNS)) == ()


def test_every_seeded_fault_is_found_and_nothing_else():
    for kind, (lm, messages, options) in FAULTS.items():
        messages = [user("Hi ")] if kind == "template_differs" else messages
        found = {finding.kind: finding for finding in chat.check(lm, messages, answer="The cat", **options)}
        allowed = {kind, "content_cut"} if kind == "template_differs" else {kind}
        assert set(found) == allowed, kind
        finding = found[kind]
        assert finding.consequence and finding.mend and "{" not in finding.consequence + finding.mend.replace("{%", "")
        assert (finding.harm is None) == (kind in WITHOUT_HARM), kind


def test_places_are_where_the_fault_is():
    places = {
        "text_became_control": "<|im_end|>",
        "control_as_text": "<|begin|>",
        "token_split": " ",
        "prompt_after_answer": "<|im_start|>assistant\n",
        "system_moved": "Be brief.",
        "bos_added_again": "<s>",
    }
    for kind, text in places.items():
        lm, messages, options = FAULTS[kind]
        (finding,) = chat.check(lm, messages, **options)
        rendered = chat.render(lm.chat_template, messages, **options)
        assert rendered.text[slice(*finding.place)] == text, kind
        assert finding.harm is None  # nothing to measure it with
    lm, messages, _ = FAULTS["refused"]
    assert chat.check(lm, messages)[0].message == 1


def mean_loss(lm, ids, targets):
    logits = lm([*ids, *targets]).double().numpy()
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.mean([logs[len(ids) - 1 + i, target] for i, target in enumerate(targets)])


def test_the_harm_is_the_models_loss_with_and_without():
    lm, messages, options = FAULTS["prompt_missing"]
    (finding,) = chat.check(lm, messages, answer="The cat", **options)
    targets = lm.tokenizer.encode("The cat").ids
    as_is, mended = (
        mean_loss(lm, chat.encode(lm, messages, add_generation_prompt=p).ids, targets) for p in (False, True)
    )
    assert finding.harm == Harm("loss", pytest.approx(as_is, abs=1e-5), pytest.approx(mended, abs=1e-5))

    lm, messages, options = FAULTS["token_split"]
    (finding,) = chat.check(lm, messages, answer="The cat", **options)
    ids = chat.encode(lm, messages).ids
    assert finding.harm.as_is == pytest.approx(mean_loss(lm, ids, targets), abs=1e-5)
    together = lm.tokenizer.encode(" The cat").ids
    assert finding.harm.mended == pytest.approx(mean_loss(lm, ids[:-1], together), abs=1e-5)

    lm, messages, options = FAULTS["stop_differs"]
    (finding,) = chat.check(lm, messages, answer="The cat", **options)
    after = lm([*chat.encode(lm, messages).ids, *targets])[-1].double().numpy()
    probs = np.exp(after) / np.exp(after).sum()
    special = lm.tokenizer.special_tokens
    expected = Harm("probability", pytest.approx(probs[special["</s>"]]), pytest.approx(probs[special["<|im_end|>"]]))
    assert finding.harm == expected


def test_what_is_empty_or_longer_than_the_model_takes_is_not_measured():
    long = [user("Hi" * 300)]
    for kind, options in (("prompt_missing", {"add_generation_prompt": False}), ("stop_differs", {})):
        lm = FAULTS[kind][0]
        (finding,) = chat.check(lm, long, answer="The cat", **options)
        assert (finding.kind, finding.harm, finding.unmeasured) == (kind, None, "long")
    lm, messages, options = FAULTS["prompt_missing"]
    (finding,) = chat.check(lm, messages, answer="", **options)
    assert (finding.kind, finding.harm) == ("prompt_missing", None)
    found = chat.check(lm, messages, template="", answer="The cat")
    assert {finding.kind: finding.harm for finding in found} == {"message_dropped": None, "prompt_ignored": None}
    found = chat.check(chat_model(TURNS, first="<s>"), messages, template="", answer="The cat")
    assert ("bos_missing", None) in [(finding.kind, finding.harm) for finding in found]
    for ids, answer in (([1], ""), ([], "The cat")):
        with pytest.raises(ValueError, match="give"):
            chat.answer_loss(lm, ids, answer)


def test_measuring_tells_how_far_it_is_and_has_an_end(monkeypatch):
    messages = [user("</s>"), assistant("no answer")]  # a control string, and a new turn after the answer
    lm = chat_model(TURNS, first="<s>")
    steps = list(chat.checking(lm, messages, answer="The cat"))
    assert [(step.done, step.total) for step in steps] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [sum(finding.harm is not None for finding in step.findings) for step in steps] == [0, 1, 2, 3]
    assert steps[-1].findings == chat.check(lm, messages, answer="The cat")
    assert not any(finding.unmeasured for finding in steps[-1].findings)
    module = importlib.import_module("lmcore.chat.check")
    monkeypatch.setattr(module, "SECONDS", -1.0)
    assert {(f.harm, f.unmeasured) for f in chat.check(lm, messages, answer="The cat")} == {(None, "late")}


def test_another_template_that_gives_no_text_is_told_from_one_that_writes_another(monkeypatch):
    lm = chat_model(TURNS)
    (refused,) = chat.check(lm, ASKED, other=ChatTemplate("{{ raise_exception('Not me.') }}", filename="f"))
    assert (refused.kind, refused.values["sentence"]) == ("other_refused", "Not me.")
    monkeypatch.setattr(process, "SECONDS", 0.3)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    (late,) = chat.check(lm, ASKED, other=ChatTemplate(endless), answer="The cat")
    assert late.kind == "other_unknown" and "longer than 0.3 seconds" in late.consequence


def test_what_another_program_made_of_the_conversation():
    lm = chat_model(TURNS)
    text, ids = chat.render(TURNS, ASKED).text, chat.encode(lm, ASKED).ids
    assert chat.check(lm, ASKED, other=Elsewhere("there", text)) == ()
    assert chat.check(lm, ASKED, other=Elsewhere("there", text, tuple(ids))) == ()
    (found,) = chat.check(lm, ASKED, other=Elsewhere("there", text, (0, *ids)), answer="The cat")
    assert (found.kind, found.values["at"], found.place) == ("ids_differ", 0, (0, len("<|im_start|>")))
    targets = lm.tokenizer.encode("The cat").ids
    assert found.harm.mended == pytest.approx(mean_loss(lm, [0, *ids], targets), abs=1e-5)
    (found,) = chat.check(lm, ASKED, other=Elsewhere("there", text.replace("Hi", "hi")), answer="The cat")
    assert (found.kind, found.values["at"], found.harm) == ("template_differs", text.index("Hi"), None)


def test_a_control_string_is_said_once_a_message_and_measured_once():
    calls = []

    class Counting:
        def __init__(self, lm):
            self.name, self.tokenizer, self.end_tokens = lm.name, lm.tokenizer, lm.end_tokens
            self.chat_template, self.config, self._lm = lm.chat_template, lm.config, lm

        def last_logits(self, ids, n):
            calls.append(len(ids))
            return self._lm.last_logits(ids, n)

    messages = [user("<s>" * 5 + "</s>"), assistant("a"), user("<s>")]
    found = chat.check(Counting(chat_model(TURNS)), messages, answer="The cat")
    told = [(finding.message, finding.values["string"]) for finding in found]
    assert told == [(0, "<s>"), (0, "</s>"), (2, "<s>")] and {finding.kind for finding in found} == {
        "text_became_control"
    }
    assert len(calls) == 2 and all(finding.harm == found[0].harm is not None for finding in found)


def test_no_beginning_is_tried_of_a_conversation_that_took_too_long(monkeypatch):
    rendered = []

    def counted(template, messages, **options):
        rendered.append(len(messages))
        return chat.render(template, messages, **options)

    monkeypatch.setattr(
        importlib.import_module("lmcore.chat.lint"), "render", counted
    )  # the package has a function of that name
    monkeypatch.setattr(process, "SECONDS", 0.3)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    (finding,) = chat.check(chat_model(endless), [*ASKED * 9])
    assert (finding.kind, finding.message, rendered) == ("refused", None, [9])
    rendered.clear()
    late = (
        "{% if messages|length == 3 %}"
        + endless
        + "{% elif messages|length == 9 %}{{ raise_exception('no') }}{% endif %}"
    )
    (finding,) = chat.check(chat_model(late), [*ASKED * 9])
    assert (finding.message, rendered) == (None, [9, 1, 2, 3])
