"""What the overview is told, against other ways to the same numbers."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import lmcore
from lmcore.analysis.logits.lens import logit_lens
from lmcore.generation import generate
from pages.stages.overview.told import ROWS, window
from tests.pages.harness import snippet
from tests.pages.overview.page import array, logits, open_overview, told

PROMPT = "The weather today is"


@pytest.mark.parametrize("model", lmcore.builtin.names())
def test_its_numbers_are_the_models(model: str) -> None:
    app = open_overview(model=model, prompt=PROMPT)
    assert not app.exception
    shown, lm = told(app), lmcore.load(model)
    ids = lm.tokenizer.encode(PROMPT).ids
    trace = lmcore.Trace()
    out = lm(ids, trace=trace)
    assert [row["id"] for row in shown["text"]["rows"]] == ids
    assert np.allclose(logits(app), out[-1].numpy(), atol=1e-5)
    attention = array(shown["way"]["attention"])
    for block in range(lm.config.n_layers):
        assert np.allclose(attention[block], trace[f"blocks.{block}.attn.pattern"][:, -1].numpy(), atol=1e-6)
    probs = np.exp(out[-1].double().numpy() - out[-1].double().numpy().max())
    assert shown["way"]["lens"][-1]["p"] == pytest.approx(float(probs.max() / probs.sum()), rel=1e-4)
    assert np.allclose(array(shown["way"]["hidden"]), trace["hidden_state"][-1].numpy(), atol=1e-5)


def test_a_long_text_is_told_in_brief_but_for_its_last_tokens_and_nothing_of_the_attention_is_lost() -> None:
    prompt = "The weather today is " * 40
    shown = told(open_overview(prompt=prompt))
    length = len(lmcore.load("small-world").tokenizer.encode(prompt).ids)
    assert shown["text"]["earlier"] == length - ROWS and len(shown["text"]["rows"]) == ROWS
    whole = array(shown["way"]["attention"]).sum(-1) + array(shown["way"]["before"])
    assert np.allclose(whole, 1, atol=1e-5)


@pytest.mark.parametrize("length", [1, 11, 12, 13, 512])
def test_the_window_holds_every_position_and_as_many_as_it_can(length: int) -> None:
    for position in range(length):
        shown = window(length, position)
        assert position in shown and len(shown) == min(ROWS, length)
        assert shown.start >= 0 and shown.stop <= length


def test_links_lead_to_the_same_state() -> None:
    shown = told(open_overview(prompt=PROMPT, temperature="0.7", layer="3", **{"overview.head": "1", "position": "2"}))
    query = parse_qs(urlsplit(shown["links"]["blocks"]["href"]).query)
    assert query["prompt"] == [PROMPT] and query["temperature"] == ["0.7"]
    assert (query["layer"], query["head"], query["position"]) == (["3"], ["1"], ["2"])
    assert shown["next"] == shown["text"]["rows"][3]["id"]  # the token that came after the followed one


def test_a_link_opens_with_the_tokens_drawn_and_with_the_candidate_followed() -> None:
    lm = lmcore.load()
    ids = lm.tokenizer.encode(PROMPT).ids
    settings = lmcore.SamplingSettings(temperature=1.4, seed=7)
    drawn = [step.token_id for step in generate(lm, ids, settings, max_new_tokens=2)]
    other = next(token for token in range(100, 110) if token not in drawn)
    linked = {"overview.drawn": ",".join(map(str, [*drawn, other])), "overview.candidate": "5"}
    app = open_overview(prompt=PROMPT, temperature="1.4", seed="7", **linked)
    assert not app.exception
    shown = told(app)
    assert [row["id"] for row in shown["text"]["rows"]] == [*ids, *drawn, other]
    assert shown["draw"]["by_hand"]  # which the seed does not draw
    trace = lmcore.Trace()
    out = lm([*ids, *drawn, other], trace=trace)[-1]
    assert np.allclose(logits(app), out.numpy(), atol=1e-5)
    lens = list(logit_lens(lm.model, trace, 5, slice(-1, None), within_blocks=False))
    assert np.allclose(shown["way"]["candidate"]["probs"], [layer.target_probs.item() for layer in lens], rtol=1e-3)
    assert shown["way"]["candidate"]["ranks"] == [layer.target_ranks.item() for layer in lens]


@pytest.mark.parametrize("position", ["", "2", "4"])
def test_the_lines_of_python_give_the_numbers_in_view(position: str) -> None:
    lm = lmcore.load()
    ids = lm.tokenizer.encode(PROMPT).ids
    settings = lmcore.SamplingSettings(temperature=1.4, seed=7)
    drawn = [step.token_id for step in generate(lm, ids, settings, max_new_tokens=3)]
    linked = {"overview.drawn": ",".join(map(str, drawn[:2]))} | ({"position": position} if position else {})
    app = open_overview(prompt=PROMPT, temperature="1.4", seed="7", repetition_penalty="1.3", **linked)
    names, _printed = snippet(app)
    assert np.allclose(names["logits"].numpy(), logits(app), atol=1e-5)
    assert names["result"].steps[0].name == "repetition_penalty"
    app = open_overview(prompt=PROMPT, temperature="1.4", seed="7", **linked)
    last = app.code[-1].value.strip().splitlines()[-1]
    assert position or eval(last.partition("#")[0], snippet(app)[0]) == drawn[2]
    assert not position or "draw" not in last


@pytest.mark.parametrize("given", ["1600", "-1", "3,,4", "a", ",".join(["3"] * 65)])
def test_drawn_tokens_that_do_not_fit_are_left_out_and_said(given: str) -> None:
    app = open_overview(prompt=PROMPT, **{"overview.drawn": given})
    assert not app.exception
    assert told(app)["draw"]["n"] == 0
    assert any("do not fit" in caption.value for caption in app.caption)


def test_links_of_a_conversation_lead_to_it() -> None:
    chat = '{"messages":[{"role":"user","content":"今天天气"}]}'
    template = "{{ messages[0].content }}<|endoftext|>"
    shown = told(open_overview(form="chat", chat=chat, **{"chat.template": template}))
    lm = lmcore.load()
    ids = lmcore.chat.encode(lm, [{"role": "user", "content": "今天天气"}], template=template).ids
    assert [row["id"] for row in shown["text"]["rows"]] == ids
    query = parse_qs(urlsplit(shown["links"]["blocks"]["href"]).query)
    assert (query["form"], query["chat"], query["chat.template"]) == (["chat"], [chat], [template])


@pytest.mark.parametrize(
    "values",
    [{"layer": "99"}, {"overview.head": "99"}, {"position": "99"}, {"seed": "-5"}, {"overview.candidate": "1600"}],
)
def test_what_does_not_fit_the_model_is_brought_to_what_does(values: dict[str, str]) -> None:
    app = open_overview(prompt=PROMPT, **values)
    assert not app.exception and not app.error
    chosen = told(app)["chosen"]
    assert 0 <= chosen["layer"] < 4 and -1 <= chosen["head"] < 4 and 0 <= chosen["position"] < 4
