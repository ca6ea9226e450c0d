"""The page about what is kept, limited, licensed and installed says what is so."""

import platform
from importlib.metadata import version

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import lmcore
from lmcore.checkpoints.packaged import PACKAGED
from pages.common import session
from pages.stages.about.card import rows
from pages.stages.sampling import drawing, sources
from tests.lmcore.checkpoints.tiny import write_folder
from tests.pages.harness import opener, told

run = opener("about")


def texts_of_tables(app: AppTest) -> list[dict[str, list[str]]]:
    """Return each table as heading -> rows."""
    return [{str(row): list(map(str, values)) for row, *values in table.value.itertuples()} for table in app.table]


@pytest.mark.slow
def test_limits_are_those_of_the_code() -> None:
    limits = texts_of_tables(run())[0]
    assert limits["Prompt"] == [f"{session.MAX_CHARACTERS:,} characters, and no more tokens than the model's context"]
    assert limits["Draws per press"] == [f"{drawing.MAX_DRAWS:,}"]
    assert limits["Your own logits"] == [f"{sources.MAX_CHARACTERS:,} characters"]
    assert limits["Uploaded file"] == [f"{st.get_option('server.maxUploadSize')} MB"]


def test_the_chosen_models_card_is_what_its_file_says(tmp_path, monkeypatch) -> None:
    write_folder("llama", tmp_path / "tiny")
    path = tmp_path / "tiny" / "config.json"
    path.write_text(path.read_text().replace("{", '{"unsloth_version": "2025.1",', 1))
    readme = "---\nlicense: apache-2.0\nbase_model:\n- someone/base\n---\n# Tiny\n"
    (tmp_path / "tiny" / "README.md").write_text(readme)
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    app = run(model="tiny")
    card = {what: [value.strip("`")] for what, (value,) in texts_of_tables(app)[1].items()}
    assert (card["family"], card["stored as"], card["bits per weight"]) == (["llama"], ["F32 100.0 %"], ["32.00"])
    assert card["file"] == ["model.safetensors"] and "endoftext" in card["tokens that end a text"][0]
    assert "unsloth_version='2025.1'" in told(app)
    lm = lmcore.load(tmp_path / "tiny")
    config = lm.config
    assert f"d_model {config.d_model}, n_layers {config.n_layers}," in card["sizes"][0]
    assert card["tokenizer"] == [f"BPE, {config.vocab_size:,}"] and card["chat template"] == ["none"]
    assert (card["licence"], card["source"]) == (["apache-2.0"], ["someone/base"])
    held = {id(tensor): tensor.numel() * 4 for tensor in lm.model.parameters()}
    keys = 2 * config.n_layers * config.n_kv_heads * config.d_head * config.context_length * 4
    assert f"weights {sum(held.values()) / 2**20:,.0f} MiB (float32)" in card["memory"][0]
    assert f"full context {keys / 2**20:,.0f} MiB" in card["memory"][0]


def test_what_is_unusual_of_a_model_is_said(tmp_path, monkeypatch) -> None:
    for case in ("gpt_oss", "gemma2"):
        write_folder(case, tmp_path / case)
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    said = {case: dict(rows(lmcore.load(tmp_path / case)))["unusual"] for case in ("gpt_oss", "gemma2")}
    for words in ("RoPE scaled: yarn", "5 experts in each layer, 2 used", "attention sinks", "latest 6 tokens only"):
        assert words in said["gpt_oss"], words
    for words in ("soft cap", "before and after each part", "scaled embeddings", "the head is the embedding"):
        assert words in said["gemma2"], words


def test_every_model_is_there_with_its_licence() -> None:
    models = texts_of_tables(run())[2]
    assert list(models) == [f"`{model.name}`" for model in lmcore.available()]
    for model in PACKAGED.values():
        assert models[f"`{model.name}`"] == [model.licence, "installed" if model.installed else "not installed"]
    assert "trained on its own grammar" in models["`small-world`"][0]


def test_versions_are_those_installed() -> None:
    versions = texts_of_tables(run(lang="zh"))[3]
    assert versions["Python"] == [platform.python_version()]
    for package in ("streamlit", "torch", "numpy"):
        assert versions[package] == [version(package)]


def test_it_says_how_long_a_session_lives_and_how_much_is_kept_in_memory() -> None:
    text = told(run())
    assert f"{st.get_option('server.disconnectedSessionTTL') / 60:g} minutes" in text
    assert f"{session.MAX_CACHE_BYTES / 2**20:.0f} MB, and the oldest are removed first" in text


def test_with_an_engine_it_says_that_prompts_are_sent_there(monkeypatch) -> None:
    assert "Sent elsewhere: nothing" in told(run())
    monkeypatch.setattr("pages.common.engines.names", lambda: ("far <b>away</b>",))
    text = told(run())
    assert "Sent elsewhere: nothing" not in text and "`far␣<b>away</b>`" in text
