"""The sampling page: its numbers are lmcore's, its table is the worked example, its snippet runs as it stands."""

import json

import numpy as np
import pytest
import torch
from scipy import stats
from streamlit.testing.v1 import AppTest

import lmcore
from lmcore.sampling import PRESETS, STAGES, History, SamplingSettings, preset
from pages.figures.sampling.draws import observed_against_expected
from pages.stages.sampling import tables, worked
from pages.stages.sampling.sources import Source
from tests.pages.harness import opener, parts, snippet, table_with

run = opener("sampling")


def softmax(logits: list[float], temperature: float = 1.0) -> np.ndarray:
    weights = np.exp(np.array(logits) / temperature)
    return weights / weights.sum()


def test_the_worked_table_agrees_with_numpy_and_with_the_published_figures() -> None:
    probs = worked.table()
    logits = list(worked.LOGITS.values())
    for name, temperature in {"T = 1": 1.0, "T = 0.5": 0.5, "T = 1.5": 1.5}.items():
        np.testing.assert_allclose(probs.loc[name], softmax(logits, temperature), atol=1e-12)
    three = softmax(logits) * [1, 1, 1, 0, 0]
    np.testing.assert_allclose(probs.loc["top-k 3"], three / three.sum(), atol=1e-12)
    np.testing.assert_allclose(probs.loc["top-p 0.9"], three / three.sum(), atol=1e-12)
    assert worked.mass_kept_by_top_p() == pytest.approx(three.sum(), abs=1e-12)


def test_the_worked_page_shows_the_table_and_checks_the_claims() -> None:
    app = run(source="worked")
    percent = table_with(app, "不错")[list(worked.LOGITS)].round(2)
    assert percent.loc[0].tolist() == [15.55, 6.99, 69.71, 2.57, 5.18]
    assert percent.loc[1].tolist() == [4.67, 0.94, 93.75, 0.13, 0.52]
    assert percent.loc[2].tolist() == [19.66, 11.53, 53.44, 5.92, 9.44]
    assert percent.loc[3].tolist() == percent.loc[4].tolist() == [16.86, 7.58, 75.56, 0, 0]
    claims = app.table[0].value
    computed = claims["Computed"].tolist()
    assert "4.67 / 0.94 / 93.75 / 0.13 / 0.52" in computed[0]
    assert "108.6 %" in claims.index[1] and "19.66 / 11.53 / 53.44 / 5.92 / 9.44" in computed[1]
    assert "92.25 %" in computed[2]


SETTINGS = {
    "temperature": "0.7",
    "top_k": "12",
    "min_p": "0.02",
    "repetition_penalty": "1.2",
    "order": "top_k,temperature",
}


def expected(prompt: str, model: str = "small-world", position: int = -1, **settings: object) -> lmcore.Reshaped:
    lm = lmcore.load(model)
    ids = lm.tokenizer.encode(prompt).ids
    last = len(ids) if position < 0 else position + 1
    return lmcore.reshape(lm(ids)[last - 1], SamplingSettings(**settings), lmcore.History(prompt=ids[:last]))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_numbers_are_those_of_lmcore(lang: str) -> None:
    app = run(lang=lang, prompt="小明喜欢小红", **SETTINGS)
    order = ("top_k", "temperature", *(name for name in STAGES if name not in ("top_k", "temperature")))
    result = expected("小明喜欢小红", temperature=0.7, top_k=12, min_p=0.02, repetition_penalty=1.2, order=order)
    table = table_with(app, "final" if lang == "en" else "最终")
    ids = table["id"].tolist()
    np.testing.assert_allclose(table["final" if lang == "en" else "最终"], 100 * result.probs[ids].numpy(), atol=1e-10)
    np.testing.assert_allclose(table["T = 1"], 100 * result.initial_probs[ids].numpy(), atol=1e-10)
    assert [name for name in table.columns if name[0].isdigit()] == [
        f"{number} {title}"
        for number, title in enumerate(
            ["Top-k", "Temperature", "Repetition penalty", "Min-p"]
            if lang == "en"
            else ["Top-k", "温度", "重复惩罚", "Min-p"],
            start=1,
        )
    ]


@pytest.mark.parametrize("model", lmcore.builtin.names())
def test_every_model_and_a_token_that_is_part_of_a_character(model: str) -> None:
    app = run(model=model, prompt="😊")
    table = table_with(app, "final")
    result = expected("😊", model)
    np.testing.assert_allclose(table["final"].sum() / 100, result.probs[table["id"].tolist()].sum(), atol=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [
        {"prompt": "The king", **SETTINGS},
        {
            "prompt": 'it\'s "quoted" \\ and 今天\n',
            "position": "1",
            "presence_penalty": "0.5",
            "logit_bias": "5:2,7:-1.5",
        },
        {"source": "worked", "temperature": "1.5", "top_k": "3", "top_p": "0.9"},
        {"source": "own", "own_logits": "a: 1\nb: -inf\nc: 0.25", "typical_p": "0.5"},
        {"prompt": "我", "temperature": "0"},
        {"prompt": "我喜欢", "logit_bias": "5:-inf,9:2"},
        {"prompt": "我喜欢", "engine": "llama.cpp", "top_k": "9", "repetition_penalty": "1.3", "penalty_last_n": "2"},
        {"prompt": "我喜欢", "engine": "exllamav2", "top_p": "0.6", "order": "top_p,temperature", "temperature": "2"},
        {"prompt": "我喜欢", "presence_penalty": "1", "history_out": "0", "history_added": "7,7,9"},
    ],
)
def test_the_snippet_runs_as_it_stands_and_gives_the_numbers(parameters: dict[str, str]) -> None:
    app = run(**parameters)
    names, printed = snippet(app)
    result = names["result"]
    table = table_with(app, "final")
    np.testing.assert_allclose(table["final"], 100 * result.probs[table["id"].tolist()].numpy(), atol=1e-9)
    assert f"{result.candidates} {result.entropy_bits:.3f} bits" in printed


def test_the_json_says_what_lmcore_computes() -> None:
    settings = SamplingSettings(temperature=0.5, top_k=3, logit_bias={1: -2.0, 3: -np.inf})
    logits = np.array(list(worked.LOGITS.values()))
    result = lmcore.reshape(logits, settings)
    source = Source(logits, list(worked.LOGITS).__getitem__, lambda text: [], History(), "")
    table, _formats = tables.numbers(source, result)
    read_back = json.loads(tables.as_json(table, settings, result))
    assert [step["kept"] for step in read_back["steps"]] == [4, 4, 3]
    assert read_back["settings"]["logit_bias"] == {"1": -2.0, "3": "-inf"}
    assert "Infinity" not in tables.as_json(table, settings, result)
    assert {token["Token"]: token["final"] for token in read_back["tokens"]} == pytest.approx(
        dict(zip(worked.LOGITS, result.probs.tolist(), strict=True))
    )


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("temperature", "-1", 1.0),
        ("temperature", "nan", 1.0),
        ("top_p", "1.5", 1.0),
        ("top_k", "2.5", 0),
        ("repetition_penalty", "0", 1.0),
        ("order", "top_k,top_k", None),
        ("order", "softmax", None),
        ("logit_bias", "x", ""),
        ("logit_bias", "1:inf", ""),
        ("logit_bias", "1:nan", ""),
        ("engine", "gpt", "lmcore"),
        ("penalty_last_n", "-1", 0),
        ("history_out", "99", ()),
        ("history_added", "x", ()),
        ("bars", "many", 20),
        ("token", "-3", None),
    ],
)
def test_values_that_do_not_fit_are_replaced_and_said(name: str, value: str, instead: object) -> None:
    app = run(prompt="我喜欢", **{name: value})
    assert app.session_state[name] == instead
    assert any(f"{value} is not valid for {name}" in text.value for text in app.text)


def test_a_bias_for_an_id_outside_the_vocabulary_waits_for_its_model() -> None:
    app = run(source="worked", logit_bias="3:1,90000:2")
    assert parts(app, "sampling")[1]["logit_bias"] == {"3": 1.0}
    assert app.session_state["logit_bias"] == "3:1,90000:2"


def test_edits_that_leave_no_token_are_said_and_the_page_stops() -> None:
    app = run(source="own", own_logits="a: 1e308", logit_bias="0:1e308")
    assert "leave no token, or overflow" in app.info[0].value


def test_drawing_needs_the_button_and_the_same_seed_gives_the_same_draws() -> None:
    app = run(source="worked", draws="500", seed="7", temperature="1.5")
    assert not app.get("plotly_chart")
    app.button(key="sampling.draw").click().run()
    assert not app.exception
    (chart,) = app.get("plotly_chart")
    probs = lmcore.reshape(list(worked.LOGITS.values()), SamplingSettings(temperature=1.5)).probs
    counts = lmcore.sampling.draws(probs, 500, 7).numpy()
    shown = json.loads(chart.proto.spec)["data"]
    order = np.argsort(-probs.numpy(), kind="stable")
    assert [trace.get("type") for trace in shown] == ["bar", "scatter"]
    reference = stats.chisquare(counts, probs.numpy() * 500)
    assert (probs.numpy() * 500).min() > 5
    said = next(text.value for text in app.text if "χ²" in text.value)
    assert f"{reference.statistic:.3f}, 4 degrees of freedom, p = {reference.pvalue:.4f}" in said
    assert order[0] == 2
    app.number_input(key="seed").set_value(8).run()
    assert not app.get("plotly_chart")  # another seed: nothing has been drawn with it


def test_sessions_draw_from_generators_of_their_own() -> None:
    def drawn(app: AppTest) -> torch.Tensor:
        app.button(key="sampling.draw").click().run()
        return app.session_state["sampling.drawn"][1]

    first, second = (run(source="worked", draws="50", seed="7") for _ in range(2))
    before = drawn(first)
    torch.rand(3)  # whatever else uses the global generator
    assert torch.equal(drawn(second), before)  # and another session's drawing takes nothing from this one
    assert torch.equal(drawn(first), before)
    first.number_input(key="seed").set_value(8).run()
    assert not torch.equal(drawn(first), before)


def test_one_candidate_is_said_to_make_the_seed_void() -> None:
    assert any("the seed has no effect" in text.value for text in run(source="worked", temperature="0").text)


def test_engines_side_by_side_give_the_worked_tables() -> None:
    app = run(source="worked", temperature="1.5", top_k="3", top_p="0.9", engine_a="transformers", engine_b="llama.cpp")
    table = app.table[1].value
    assert dict(zip(table.index, table["Candidates"], strict=True)) == {
        "Hugging Face transformers 5": "3",
        "TGI": "3",
        "vLLM v1": "3",
        "SGLang": "3",
        "SGLang, PyTorch backend": "3",
        "llama.cpp": "2",
        "Ollama (GGUF), /api": "2",
        "Ollama (GGUF), /v1": "2",
        "Ollama (safetensors)": "3",
        "Ollama's Go sampler, until v0.30": "3",
        "exllamav2": "2",
        "exllamav3": "3",
        "TabbyAPI (exllamav3)": "3",
        "koboldcpp": "2",
        "text-generation-webui": "3",
        "OpenAI API (assumed)": "4",
    }
    assert "has no Top-k" in table.loc["OpenAI API (assumed)", "Stages, in the engine's order"]
    # 好 stays in transformers with .1363 and llama.cpp removes it: that is the distance between the two.
    assert any("Total variation distance: 0.1363" in text.value for text in app.text)
    fates = table_with(app, "llama.cpp")
    assert fates["Token"].tolist() == ["好"]
    # Untempered and among the three best, 不错 and 很 alone weigh 92.42 %: that is why, and .9 is below it.
    assert fates["llama.cpp"].tolist() == ["Top-p: the more probable ones sum to 92.42 %"]
    z = np.array([2.3, 1.5, 3.8])
    assert np.exp(z[[0, 2]]).sum() / np.exp(z).sum() == pytest.approx(0.9242, abs=5e-5)
    reasons = next(text.value for text in app.text if "after it in" in text.value)
    assert "Temperature runs before Top-p in Hugging Face transformers 5, after it in llama.cpp." in reasons
    assert "Top-k: in Hugging Face transformers 5 ties at rank k: all are kept; in llama.cpp" in reasons


def test_engines_own_defaults_come_in_only_when_asked_for() -> None:
    off, on = run(prompt="我喜欢"), run(prompt="我喜欢", engine_defaults="1")
    column = "Stages, in the engine's order"
    assert off.table[0].value.loc["llama.cpp", column] == ""
    assert "Top-k 40" in on.table[0].value.loc["llama.cpp", column]


def test_an_engine_that_refuses_is_said_and_the_others_are_shown() -> None:
    table = run(source="worked", temperature="0").table[1].value
    assert "refuses temperature 0" in table.loc["Hugging Face transformers 5", "Stages, in the engine's order"]
    assert table.loc["vLLM v1", "Candidates"] == "1"


@pytest.mark.parametrize("engine", PRESETS)
def test_the_chosen_engine_is_what_the_page_computes(engine: str) -> None:
    app = run(prompt="我喜欢", engine=engine, temperature="1.5", top_k="9", top_p="0.8", repetition_penalty="1.3")
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("我喜欢").ids
    off = {name: None for name in PRESETS[engine].defaults}
    settings = preset(engine, **{**off, "temperature": 1.5, "top_k": 9, "top_p": 0.8, "repetition_penalty": 1.3})
    result = lmcore.reshape(lm(ids)[-1], settings, History(prompt=ids))
    table = table_with(app, "final")
    np.testing.assert_allclose(table["final"], 100 * result.probs[table["id"].tolist()].numpy(), atol=1e-9)
    told = parts(app, "sampling")[1]
    assert told["engine"] == engine and told["order"][: len(PRESETS[engine].order)] == list(PRESETS[engine].order)


def test_an_engine_that_refuses_temperature_zero_says_so_and_no_number_is_shown() -> None:
    app = run(prompt="我喜欢", engine="transformers", temperature="0")
    assert any("refuses temperature 0" in info.value for info in app.info)
    assert not app.dataframe


def test_overflow_is_not_called_a_refusal_of_temperature_zero() -> None:
    told = {"source": "own", "own_logits": "a: 1e308\nb: 1", "logit_bias": "0:-inf,1:-inf"}
    assert "leave no token" in run(**told).info[0].value


def test_a_lifted_token_is_in_the_table_and_a_banned_one_named() -> None:
    lm = lmcore.load("small-world")
    logits = lm(lm.tokenizer.encode("我喜欢").ids)[-1]
    last = int(logits.argmin())
    best = int(logits.argmax())
    app = run(prompt="我喜欢", logit_bias=f"{last}:60,{best}:-inf")
    settings = parts(app, "sampling")[1]
    assert settings["logit_bias"] == {str(last): 60.0, str(best): "-inf"}
    table = table_with(app, "final").set_index("id")
    assert table.loc[last, "final"] > 99 and table.loc[best, "removed by"] == "Logit bias"


def test_a_hundred_thousand_draws_can_be_had_with_their_p_value() -> None:
    app = run(prompt="今天天气", draws="100000", seed="3", top_p="0.95")
    app.button(key="sampling.draw").click().run()
    result = expected("今天天气", top_p=0.95)
    counts = lmcore.sampling.draws(result, 100_000, 3)
    test = lmcore.sampling.chi_square(counts, result)
    kept = result.probs > 0
    mean = result.probs[kept].numpy() * 100_000
    assert mean.min() > 5  # no cell is pooled, so that scipy has the same ones
    reference = stats.chisquare(counts[kept].numpy(), mean)
    assert test.p_value == pytest.approx(reference.pvalue, abs=1e-9)
    assert any(f"p = {reference.pvalue:.4f}" in text.value for text in app.text)
    assert any("Download the draws" in button.proto.label for button in app.get("download_button"))
    assert run(prompt="今天天气", draws="100001").session_state["draws"] == 100_000


def test_the_picture_of_draws_carries_the_numbers() -> None:
    figure = observed_against_expected(["a", "<b>"], [3, 1], [2.5, 0.25], drawn="d", expected_title="e", y_title="n")
    bar, marks = figure.data
    assert list(bar.y) == [3, 1] and list(marks.y) == [2.5, 0.25]
    np.testing.assert_allclose(marks.error_y.array, np.sqrt([2.5, 0.25]))
    np.testing.assert_allclose(marks.error_y.arrayminus, [np.sqrt(2.5), 0.25])  # fewer than none cannot be drawn
    assert list(bar.customdata) == ["a", "&lt;b&gt;"]
    same = observed_against_expected(["a", "a"], [3, 1], [2, 2], drawn="d", expected_title="e", y_title="n").data[0]
    assert list(same.x) == [0, 1]  # equal texts have a bar each


def test_the_whole_vocabulary_is_there_to_download_with_the_bytes_of_each_token() -> None:
    lm = lmcore.load("small-world")
    result = lmcore.reshape(lm(lm.tokenizer.encode("今").ids)[-1], SamplingSettings(top_k=5))
    source = Source(result.start.logits.numpy(), lm.tokenizer.token_bytes, list, History(), "")
    frame, _formats = tables.numbers(source, result, lm.config.vocab_size)
    assert sorted(frame["id"]) == list(range(lm.config.vocab_size))
    for token_id, text in zip(frame["id"], frame["bytes"], strict=True):
        assert bytes.fromhex(text) == lm.tokenizer.token_bytes(token_id)
    told = json.loads(tables.as_json(frame, result.settings, result))
    assert len(told["tokens"]) == lm.config.vocab_size
    names = [button.proto.label for button in run(prompt="今").get("download_button")]
    assert names.count("Download as CSV") >= 2
