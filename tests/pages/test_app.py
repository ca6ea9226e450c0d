"""Every page, in both languages, with every built-in model and with prompts that do not fit."""

import sys

import plotly.io
import pytest
import streamlit as st

import lmcore
from lmcore.checkpoints import packaged
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.loading import FOLDER_VARIABLE, Progress
from tests.lmcore.checkpoints.tiny import write_folder
from tests.pages.harness import MODELS, PAGES, clean, figures, go_to, open_page, told
from tests.pages.views import wrong_views


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("lang", "prompt"), [("zh", "小明喜欢小红"), ("en", "The weather today is")])
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, lang: str, prompt: str, model: str) -> None:
    app = clean(open_page(page, lang=lang, prompt=prompt, model=model))
    assert app.session_state["model"] == model
    assert len(app.title) == 1 and (app.code or page == "lessons")
    assert all(figure.layout.template == plotly.io.templates["streamlit"] for figure in figures(app))
    assert (app.title[0].value.isascii()) == (lang == "en")


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["", "我", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "好" * 600, "x" * 5000])
@pytest.mark.parametrize("page", PAGES)
def test_page_meets_any_prompt_with_numbers_or_a_sentence(page: str, prompt: str) -> None:
    app = clean(open_page(page, prompt=prompt))
    assert app.session_state["prompt"] == prompt  # the text is kept
    assert len(app.title) == 1


def test_a_prompt_whose_pass_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.common.session.LARGEST_PASS", 4_000_000)
    st.cache_resource.clear()
    try:
        app = clean(open_page("blocks", prompt="好" * 300))
        assert "tokens fit" in told(app) and app.session_state["prompt"] == "好" * 300
        assert not app.get("plotly_chart")
    finally:
        st.cache_resource.clear()


def test_unknown_language_and_model_are_replaced_and_said() -> None:
    app = open_page(PAGES[0], lang="xx", model="<b>gpt-9</b>")
    assert (app.session_state["lang"], app.session_state["model"]) == ("en", MODELS[0])
    assert "There is no model named <b>gpt-9</b>" in told(app)


@pytest.mark.parametrize(("prompt", "is_outside"), [("床前明月光，", True), ("今天天气", False), ("", False)])
def test_a_prompt_outside_the_small_world_is_said_on_every_page(prompt: str, is_outside: bool) -> None:
    app = open_page(PAGES[0], lang="en", prompt=prompt)
    for page in ("sampling", "logits", "about"):
        go_to(app, page)
        assert ("This text is not one of them" in told(app)) == is_outside


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gemma3", "gpt_neox", "smollm3", "gpt_oss"])
@pytest.mark.parametrize("page", PAGES)
def test_every_view_runs_with_other_families_in_bfloat16(page: str, family: str, tmp_path, monkeypatch) -> None:
    write_folder(family, tmp_path / "tiny")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert not wrong_views(page, prompt="the cat sat", model="tiny:bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("model", PACKAGED)
@pytest.mark.parametrize("page", PAGES)
def test_every_view_runs_with_the_packaged_models(page: str, model: str) -> None:
    if not PACKAGED[model].installed:
        pytest.skip(f"{model} is not installed")
    assert not wrong_views(page, lang="zh", prompt="今天天气 😊", model=model)


@pytest.mark.slow
def test_what_bfloat16_changes_is_said(tmp_path, monkeypatch) -> None:
    write_folder("gemma3", tmp_path / "tiny")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    app = open_page(PAGES[0], prompt="the cat sat", model="tiny:bfloat16")
    half, full = lmcore.load("tiny:bfloat16"), lmcore.load("tiny")
    ids = half.tokenizer.encode("the cat sat").ids
    probs = half(ids)[-1].softmax(-1)
    moved_most = (probs - full(ids)[-1].softmax(-1)).abs().argmax()
    assert f"{probs[moved_most]:.4f} here" in " ".join(caption.value for caption in app.caption)


def test_a_quantised_model_comes_by_link_and_is_one_of_the_choices() -> None:
    app = open_page(PAGES[0], prompt="Anna likes Tom", model="small-world:kv8:q4_0")
    clean(app)
    assert app.session_state["model"] == "small-world:q4_0:kv8"
    choices = app.selectbox(key="model").options
    assert choices.index("small-world:q4_0:kv8") == choices.index("small-world") + 1
    lm, exact = lmcore.load("small-world:q4_0:kv8"), lmcore.load("small-world")
    ids = lm.tokenizer.encode("Anna likes Tom").ids
    probs = lm(ids)[-1].softmax(-1)
    moved_most = (probs - exact(ids)[-1].softmax(-1)).abs().argmax()
    said = " ".join(caption.value for caption in app.caption)
    assert "quantised as q4_0 and read back: 4.53 bits a weight" in said and "The KV cache keeps 8-bit" in said
    assert f"{probs[moved_most]:.4f} here" in said
    app = open_page(PAGES[0], prompt="Anna likes Tom", model="small-world:q3_k")
    assert app.session_state["model"] == "small-world"


def test_a_model_that_is_not_installed_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PACKAGED["gemma-3-270m"]
    for module, _path in model.parts:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not there
    monkeypatch.setattr(packaged, "_folders", {})
    st.cache_resource.clear()
    app = clean(open_page(PAGES[0], prompt="The king", model=model.name))
    assert "253 MB, Gemma Terms of Use" in told(app) and app.code[0].value == model.install


def test_a_model_that_cannot_be_loaded_gives_a_sentence_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, progress: Progress) -> lmcore.LanguageModel:
        raise ValueError(f"{name}.safetensors ends too early")

    monkeypatch.setattr(lmcore, "load", broken)
    st.cache_resource.clear()
    try:
        app = open_page("blocks", prompt="The king")
        assert "could not be loaded" in app.error[0].value
        assert "ends too early" in app.code[0].value
        assert not app.dataframe and not app.get("plotly_chart")
    finally:
        st.cache_resource.clear()
