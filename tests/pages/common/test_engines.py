"""The pages in front of an engine show what the model behind it says, and every failure of it in one sentence."""

from __future__ import annotations

import base64
import json
import math

import numpy as np
import pytest

import lmcore
from lmcore import chat
from lmcore.distribution import log_softmax, loss_nats
from lmcore.engines import client
from lmcore.engines.config import FILE_VARIABLE
from pages.common import engines
from pages.locale.catalogues import translations
from tests.engines.small_server import KEY, Behaviour, serving
from tests.pages.generation.page import text_part
from tests.pages.harness import clean, figures, open_page, part, printed, tables, told

pytestmark = pytest.mark.slow

ENGINE_PAGES = ("tokenization", "logits", "sampling", "generation")
INSIDE = ("embedding", "position", "blocks", "tying")
PROMPT = "The weather today is"


@pytest.fixture
def behaviour():
    return Behaviour()


@pytest.fixture(autouse=True)
def served(behaviour, tmp_path, monkeypatch):
    """The engines Tiny, Hasty (which gives its server little time) and Gone; their key is in the environment."""
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("TINY_KEY", KEY)
    behaviour.key = KEY
    with serving(behaviour) as base_url:
        file = tmp_path / "engines.toml"
        tiny = f'base_url = "{base_url}"\nmodel = "tiny"\nkey_variable = "TINY_KEY"\n'
        tables = [
            f'[[engine]]\nname = "Tiny"\n{tiny}weights = "small-world"\n',
            f'[[engine]]\nname = "Hasty"\n{tiny}timeout = 2\n',
            '[[engine]]\nname = "Gone"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "tiny"\n',
        ]
        file.write_text("\n".join(tables), encoding="utf-8")
        monkeypatch.setenv(FILE_VARIABLE, str(file))
        forget()
        yield base_url
        forget()


def forget() -> None:
    """Read the operator's file anew, and close what is open."""
    found = engines._configured()[0]
    for config in found:
        engines._engine(config).close()
    engines._configured.clear()
    engines._engine.clear()
    engines._asked.clear()


def numbers(values) -> list[float]:
    """The numbers of an axis, packed as the page sends them."""
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()


def everything(app) -> str:
    """All that the page holds, its address included."""
    return repr(app) + "".join(element.value for element in app.code) + repr(app.query_params)


@pytest.mark.parametrize(
    ("lang", "prompt"), [("en", PROMPT), ("zh", "今天天气"), ("zh", "a😊<b>$x$:red[y]"), ("en", "我"), ("en", "")]
)
@pytest.mark.parametrize("names", ["id", "text"])
@pytest.mark.parametrize("page", ENGINE_PAGES)
def test_a_page_works_in_front_of_an_engine(behaviour, served, page, names, prompt, lang):
    behaviour.names, behaviour.late = names, names == "text"
    app = open_page(page, lang=lang, model="Tiny", prompt=prompt)
    assert [each.value for each in [*app.exception, *app.error]] == []
    assert app.session_state["model"] == "Tiny" and app.session_state["prompt"] == prompt
    assert len(app.title) == 1
    assert app.title[0].value.isascii() == (lang == "en")
    assert KEY not in everything(app) and served not in everything(app)


@pytest.mark.parametrize("page", INSIDE)
def test_a_page_that_shows_the_inside_says_that_it_needs_a_local_model(page):
    app = open_page(page, model="Tiny", prompt=PROMPT)
    assert [each.value for each in [*app.exception, *app.error]] == []
    assert "needs a local model. **Tiny** runs elsewhere" in told(app)


def test_the_picker_lists_the_engines_and_nobody_can_type_an_address():
    app = open_page("tokenization", prompt=PROMPT)
    picker = next(box for box in app.selectbox if box.key == "model")
    assert picker.options[-3:] == ["Tiny", "Hasty", "Gone"]
    other = open_page("tokenization", prompt=PROMPT, model="http://127.0.0.1:9/v1")
    assert other.session_state["model"] == "small-world"


def test_an_engine_called_like_a_local_model_is_none(tmp_path, monkeypatch):
    file = tmp_path / "other.toml"
    file.write_text('[[engine]]\nname = "small-world"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n')
    forget()
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    app = open_page("tokenization", prompt=PROMPT)
    assert not app.exception
    assert "The operator's list of engines could not be read" in told(app)


def test_the_tokens_are_the_tokenizers():
    app = open_page("tokenization", model="Tiny", prompt="今天 a")
    expected = lmcore.load("small-world").tokenizer.encode("今天 a")
    frame = tables(app)[0]
    assert frame["id"].tolist() == expected.ids
    assert printed(app, 0).splitlines()[0] == str(tuple(expected.ids))


def test_a_part_of_a_character_is_called_by_the_character_it_is_of(behaviour):
    behaviour.names, behaviour.late = "text", True
    ids = lmcore.load("small-world").tokenizer.encode("a龘").ids
    for page in ("tokenization", "logits"):
        frame = tables(open_page(page, lang="zh", model="Tiny", prompt="a龘"))[0]
        assert frame["id"].tolist() == ids
        assert frame["词元"].tolist() == ["a", *(f"⟨龘·{n}/3⟩" for n in (1, 2, 3))]


@pytest.mark.parametrize(("names", "parts"), [("id", ["⟨e4 b8⟩", "⟨81⟩"]), ("text", ["⟨丁·1/2⟩", "⟨丁·2/2⟩"])])
def test_the_bytes_of_a_part_of_a_character_are_made_visible_once(behaviour, names, parts):
    behaviour.names, behaviour.late = names, names == "text"
    app = open_page("logits", lang="zh", model="Tiny", prompt="a丁")
    assert [each["token"] for each in text_part(app)] == ["a", *parts] == tables(app)[0]["词元"].tolist()


def test_every_position_is_scored_as_the_model_does():
    app = open_page("logits", model="Tiny", prompt=PROMPT)
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    losses = loss_nats(lm(ids)[:-1], ids[1:])
    assert app.metric[0].value == f"{losses.mean():.4f}"
    frame = tables(app)[0]
    assert frame["ln P"].tolist()[1:] == pytest.approx((-losses).tolist(), abs=1e-4)
    assert printed(app, 0)


def test_the_next_token_and_the_same_weights():
    lm = lmcore.load("small-world")
    log_probs = log_softmax(lm(lm.tokenizer.encode(PROMPT).ids)[-1])
    app = open_page("logits", model="Tiny", prompt=PROMPT, **{"logits.engine": "next"})
    expected = log_probs.sort(descending=True).values[:8].exp().tolist()
    assert numbers(figures(app)[0].data[0].x) == pytest.approx(expected, abs=1e-5)
    app = open_page("logits", model="Tiny", prompt=PROMPT, **{"logits.engine": "same"})
    assert [each.value for each in [*app.exception, *app.error]] == []
    assert "Both split the prompt into the same" in told(app)
    assert float(app.metric[0].value) < 1e-3 and app.metric[1].value == "20"
    assert float(printed(app, 0)) < 1e-4


def test_prompts_cut_differently_are_told_and_only_equal_ids_are_compared(behaviour):
    behaviour.begins_with = (0,)
    ids = lmcore.load("small-world").tokenizer.encode(PROMPT).ids
    app = open_page("logits", model="Tiny", prompt=PROMPT, **{"logits.engine": "same"})
    assert [each.value for each in [*app.exception, *app.error]] == []
    assert "first at position 0" in told(app) and f"· {ids[0]} here" in told(app) and "· 0 there" in told(app)
    assert float(app.metric[0].value) < 1e-3 and app.metric[1].value == "20"  # the server was given these ids
    assert float(printed(app, 0)) < 1e-4
    cut = open_page("tokenization", model="Tiny", prompt="a丁")
    assert tables(cut)[0]["token"].tolist()[:2] == ["⟨0⟩", "a"]
    assert "A chip without text is a control token" in told(cut)
    behaviour.names, behaviour.late = "text", True
    forget()
    other = open_page("logits", model="Tiny", prompt=PROMPT, **{"logits.engine": "same"})
    assert "nothing is compared" in told(other) and not other.metric


def test_what_is_exact_is_said_to_be_exact_and_the_rest_has_bounds():
    lm = lmcore.load("small-world")
    logits = lm(lm.tokenizer.encode(PROMPT).ids)[-1]
    exact = open_page("sampling", model="Tiny", prompt=PROMPT, temperature="1.5", top_k="10")
    assert "All of this is exact" in told(exact)
    truth = lmcore.reshape(logits, lmcore.SamplingSettings(temperature=1.5, top_k=10))
    frame = tables(exact)[0]
    expected = [truth.probs[token].item() * 100 for token in frame["id"]]
    assert frame["at least"].tolist() == pytest.approx(expected, abs=1e-3) == frame["at most"].tolist()
    # Without a filter every probability told is exact, and the entropy still depends on the tail.
    assert "All of this is exact" not in told(open_page("sampling", model="Tiny", prompt=PROMPT))
    bounded = open_page("sampling", model="Tiny", prompt=PROMPT, temperature="1.5", **{"engine.n": "5"})
    assert "All of this is exact" not in told(bounded)
    truth = lmcore.reshape(logits, lmcore.SamplingSettings(temperature=1.5))
    for low, high, token in tables(bounded)[0][["at least", "at most", "id"]].itertuples(index=False):
        assert low - 1e-4 <= truth.probs[token].item() * 100 <= high + 1e-4 and low < high
    assert "Interval" in printed(bounded, 0)


def test_with_the_whole_vocabulary_it_is_the_ordinary_lab(behaviour):
    behaviour.most = -1
    lm = lmcore.load("small-world")
    app = open_page("sampling", model="Tiny", prompt=PROMPT, temperature="0.8", top_p="0.9")
    assert [each.value for each in [*app.exception, *app.error]] == []
    assert "so everything below is the same as for a local model" in told(app)
    settings = lmcore.SamplingSettings(temperature=0.8, top_p=0.9)
    truth = lmcore.reshape(lm(lm.tokenizer.encode(PROMPT).ids)[-1], settings)
    frame = next(table for table in tables(app) if "final" in table)
    expected = [truth.probs[token].item() * 100 for token in frame["id"]]
    assert frame["final"].tolist() == pytest.approx(expected, abs=1e-3)
    assert f"{truth.entropy_bits:.3f} bits" in printed(app)


@pytest.mark.parametrize("most", [50, -1])
@pytest.mark.parametrize("names", ["id", "text"])
def test_any_position_of_the_prompt_can_be_sampled(behaviour, names, most):
    behaviour.names, behaviour.late, behaviour.most = names, names == "text", most
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    for position in (0, 2):
        app = open_page("sampling", model="Tiny", prompt=PROMPT, position=str(position))
        assert [each.value for each in [*app.exception, *app.error]] == []
        truth = log_softmax(lm(ids[: position + 1])[-1]).max().exp().item()
        frame = tables(app)[0]
        share = frame["at most"] if "at most" in frame else frame["final"]
        assert share.max() == pytest.approx(100 * truth, abs=1e-3)
        assert printed(app)


def press(app, name: str):
    app.button(key=f"generation.engine.{name}").click()
    app.run()
    the_run(app).wait(20)
    return app.run()


def the_run(app):
    return list(app.session_state["generation.engine.runs"].values())[-1]


@pytest.mark.parametrize("names", ["id", "text"])
def test_a_generation_steps_runs_and_branches(behaviour, names):
    behaviour.names, behaviour.late = names, names == "text"
    app = open_page("generation", model="Tiny", prompt="The king", max_new_tokens="6")
    press(app, "step")
    assert the_run(app).node.depth == 1
    press(app, "run")
    first = the_run(app).node
    assert first.depth == 6 and the_run(app).error is None
    assert [each.value for each in [*app.exception, *app.error]] == []
    press(app, "restart")
    press(app, "take.1")
    taken = the_run(app).node
    assert taken.by_hand and taken.depth == 1 and taken.piece.rank == 2
    press(app, "run")
    assert the_run(app).node.depth == 6 and len(the_run(app).tree.leaves()) == 2
    assert first in the_run(app).tree.leaves()  # nothing is lost
    # What stands there is what the model says after the text, the taken token included.
    lm, step = lmcore.load("small-world"), the_run(app).node
    text = "The king" + the_run(app).text(step.parent)
    ids = lm.tokenizer.encode("The king").ids
    if names == "id":
        ids += [each.piece.token_id for each in step.parent.path()]
    else:
        ids = lm.tokenizer.encode(text).ids
    log_probs = log_softmax(lm(ids)[-1])
    assert step.piece.among.best[0].log_prob == pytest.approx(float(log_probs.max()), abs=1e-4)


def test_what_was_drawn_is_shown_while_the_server_is_away(behaviour):
    app = open_page("generation", model="Tiny", prompt="The king", max_new_tokens="4")
    press(app, "run")
    drawn = text_part(app)
    assert len(drawn) == 5
    behaviour.fault, engines.find("Tiny")._checked = "500", 0.0  # it is time to check the model again
    app.run()
    assert not app.error and text_part(app) == drawn
    app.slider(key="max_new_tokens").set_value(8).run()
    press(app, "step")
    assert [error.value for error in app.error] == ["**Tiny** failed on this request. Nothing is lost; try again."]
    assert text_part(app) == drawn


def test_a_stream_that_breaks_off_is_said_and_its_text_kept(behaviour):
    app = open_page("generation", model="Tiny", prompt="The king")
    behaviour.fault, behaviour.faults_left = "stream broken", 1
    press(app, "run")
    assert [error.value for error in app.error] == [
        "**Tiny** stopped in the middle of its answer. What had arrived is kept."
    ]
    assert the_run(app).node.depth == behaviour.after
    press(app, "run")
    assert not app.error and the_run(app).node.depth > behaviour.after


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("429", "{name} is too busy: several requests were refused. Try again later."),
        ("500", "{name} failed on this request. Nothing is lost; try again."),
        ("404", "{name} does not have the model named in its configuration."),
        ("context", "This text is longer than {name} can read. Shorten it above: the text is kept."),
        ("not json", "The answer of {name} does not follow its interface."),
        ("no log-probabilities", "{name} returns no log-probabilities, so there is nothing to show here."),
        ("slow", "{name} has not answered for {seconds} seconds. Nothing is lost; try again."),
    ],
)
def test_each_fault_is_one_sentence_and_the_page_recovers(behaviour, served, fault, sentence, lang):
    name = "Hasty" if fault == "slow" else "Tiny"
    app = open_page("sampling", lang=lang, model=name, prompt=PROMPT)
    behaviour.fault = fault
    app.session_state["prompt"] = "The king"
    app.run()
    expected = translations(lang).gettext(sentence).format(name=f"**{name}**", seconds="2")
    assert [error.value for error in app.error] == [expected]
    assert not app.exception and app.session_state["prompt"] == "The king"
    assert KEY not in everything(app) and served not in everything(app) and "10.1.2.3" not in everything(app)
    behaviour.fault = ""
    app.run()
    assert not app.error and not app.exception


def test_an_engine_that_is_gone_or_refuses_the_key(monkeypatch):
    app = open_page("tokenization", model="Gone", prompt=PROMPT)
    assert [error.value for error in app.error] == ["**Gone** cannot be reached now. Nothing is lost; try again later."]
    monkeypatch.setenv("TINY_KEY", "sk-wrong-key-000000")
    app = open_page("tokenization", model="Tiny", prompt=PROMPT)
    assert [error.value for error in app.error] == [
        "**Tiny** refuses the explorer's key. Its operator has to fix this."
    ]
    assert "sk-wrong" not in everything(app)
    monkeypatch.delenv("TINY_KEY")
    app = open_page("tokenization", model="Tiny", prompt=PROMPT)
    assert [error.value for error in app.error] == [
        "**Tiny** needs a key that this explorer does not have. Its operator has to set it."
    ]


def test_bounds_are_drawn_as_what_is_certain_and_what_is_possible():
    from pages.figures.sampling.partial import bounds

    figure = bounds(["a", "b", "rest"], [0.5, 0.0, 0.1], [0.5, 0.2, 0.4], [False, False, False], "possible")
    certain, possible = figure.data
    assert list(certain.x) == [0.5, 0.0, 0.1]
    assert list(possible.x) == pytest.approx([0.0, 0.2, 0.3])
    assert len(bounds(["a"], [0.5], [0.5], [False], "possible").data) == 1
    assert math.isclose(figure.layout.xaxis.range[1], 0.85)  # room for both bounds behind the longest bar


def test_the_overview_shows_what_is_told_and_says_what_is_not() -> None:
    app = open_page("overview", model="Tiny", prompt=PROMPT)
    assert not app.exception and not app.error
    assert "**Tiny** returns none of these" in told(app)
    lm = lmcore.load("small-world")
    expected = lm(lm.tokenizer.encode(PROMPT).ids)[-1].double().softmax(-1).sort(descending=True).values[:15]
    (chart,) = figures(app)
    shown = np.array(numbers(chart.data[0].x))
    assert np.allclose(shown[:15], expected.numpy(), atol=1e-5)
    assert shown[15] == pytest.approx(1 - float(expected.sum()), abs=1e-5)


def test_what_the_server_makes_of_a_conversation_is_compared(behaviour: Behaviour) -> None:
    address = {
        "tokenization.view": "chat",
        "prompt": "我喜欢",
        "chat.template": behaviour.template,
        "chat.second": "engine:Tiny",
    }
    app = open_page("tokenization", **address)  # its /tokenize takes texts only
    assert "does not tell what it makes of this conversation" in told(app) and "Field required" in told(app)
    assert part(app, "chat_text")["spans"]
    behaviour.names = "text"
    assert "has no endpoint that tells" in told(open_page("tokenization", **address | {"prompt": "我喜欢我"}))
    behaviour.names = "id"
    behaviour.chats = "llama-server"
    app = open_page("tokenization", **address | {"prompt": "我喜欢她"})
    assert all(row["same"] for row in part(app, "chat_rows")["rows"])
    assert "reads it differently" not in told(app) and "writes another text" not in told(app)
    behaviour.begins_with = (5,)
    app = open_page("tokenization", **address | {"prompt": "我喜欢你"})
    assert "writes the same text and reads it differently: from token 0 on" in told(app)
    behaviour.template = "{{ messages[0].content }}"
    app = open_page("tokenization", **address | {"prompt": "我喜欢吃"})
    assert "writes another text for this conversation, from character 4 on" in told(app)


def test_a_conversation_is_sent_as_the_server_reads_it(behaviour: Behaviour) -> None:
    behaviour.chats = "vllm"
    said = [{"role": "user", "content": "我喜欢"}, {"role": "assistant", "content": "她"}]
    address = {"model": "Tiny", "form": "chat", "chat": json.dumps({"messages": said})}
    ids = chat.encode(lmcore.load("small-world"), said, template=behaviour.template).ids
    app = clean(open_page("tokenization", **address))
    assert tables(app)[-1]["id"].tolist() == ids and str(tuple(ids)) in printed(app)
    assert "the server's own template" in told(app) and "together are the original text" in told(app)
    for page in ("overview", "logits", "sampling", "generation"):
        behaviour.asked.clear()
        app = clean(open_page(page, **address))
        assert page == "generation" or behaviour.asked[-1]["prompt"] == ids
    press(app, "step")
    run = the_run(app)
    assert behaviour.asked[-1]["prompt"] == ids
    drawn = run.text(run.node)
    app.run()
    app.button(key="turn.keep").click().run()
    kept = json.loads(app.session_state["chat"])["messages"]
    assert kept == [*said, {"role": "assistant", "content": drawn}]


def test_a_server_that_does_not_tell_is_sent_what_a_typed_template_writes(behaviour: Behaviour) -> None:
    behaviour.names = "text"
    said = [{"role": "user", "content": "我喜欢"}]
    address = {"model": "Tiny", "form": "chat", "chat": json.dumps({"messages": said})}
    for page in (*ENGINE_PAGES, "overview", "compare"):
        assert "does not tell what it makes of a conversation" in told(clean(open_page(page, **address)))
    app = clean(open_page("sampling", **address, **{"chat.template": behaviour.template}))
    assert behaviour.asked[-1]["prompt"] == "我喜欢<|endoftext|>"
    app = clean(open_page("tokenization", **address, **{"chat.template": behaviour.template}))
    n = len(tables(app)[-1])
    assert f"As a prompt, the server reads {n} tokens of this text, as many as below." in told(app)
    app = clean(open_page("logits", **address, **{"chat.template": behaviour.template}))
    assert "rank > 20" in repr(text_part(app))  # of a token that is not among those the server tells
