"""Where the sampling page has its logits and its history from: own texts, steps of a generation, edits."""

import io
import json

import numpy as np
import pytest
import torch

import lmcore
from lmcore.sampling import History, SamplingSettings
from pages.common import session
from pages.common.escape import visible
from pages.stages.sampling import sources, worked
from pages.stages.sampling.own_logits import read
from tests.pages.harness import go_to, opener, parts, snippet, table_with

run = opener("sampling")


def test_the_history_can_be_edited_and_put_back() -> None:
    app = run(prompt="小明喜欢小红", presence_penalty="2")
    lm = lmcore.load("small-world")
    ids = list(lm.tokenizer.encode("小明喜欢小红").ids)
    app.button_group(key="history.own").set_value(list(range(1, len(ids)))).run()
    assert parts(app, "sampling")[-1]["history"] == {"prompt": ids[1:], "generated": []}
    app.text_input(key="history.text").set_value("天气").run()
    app.button(key="history.add").click().run()
    extra = list(lm.tokenizer.encode("天气").ids)
    assert parts(app, "sampling")[-1]["history"] == {"prompt": ids[1:], "generated": extra}
    result = lmcore.reshape(lm(ids)[-1], SamplingSettings(presence_penalty=2), History(ids[1:], extra))
    table = table_with(app, "final")
    np.testing.assert_allclose(table["final"], 100 * result.probs[table["id"].tolist()].numpy(), atol=1e-9)
    app.text_input(key="history.text").set_value("天气").run()
    app.button(key="history.instead").click().run()
    assert parts(app, "sampling")[-1]["history"] == {"prompt": [], "generated": extra}
    app.button(key="history.reset").click().run()
    assert parts(app, "sampling")[-1]["history"] == {"prompt": ids, "generated": []}
    assert not app.exception


def test_an_edited_history_belongs_to_its_prompt_and_comes_with_a_link() -> None:
    app = run(prompt="小明喜欢小红", history_out="0,1", history_added="7")
    assert parts(app, "sampling")[-1]["history"]["generated"] == [7]
    app.session_state["prompt"] = "我喜欢"
    app.run()
    ids = list(lmcore.load("small-world").tokenizer.encode("我喜欢").ids)
    assert parts(app, "sampling")[-1]["history"] == {"prompt": ids, "generated": []}


def test_only_generated_tokens_count_where_the_engine_says_so() -> None:
    told = {"prompt": "我喜欢", "presence_penalty": "2", "engine": "vllm"}
    plain = table_with(run(**told), "final")
    np.testing.assert_allclose(plain["final"], plain["T = 1"], atol=1e-9)
    token = int(plain["id"][3])
    added = table_with(run(**told, history_added=str(token)), "final").set_index("id")
    assert abs(added["final"] / added["T = 1"] - 1).idxmax() == token


def test_tokens_of_listed_sources_are_found_by_their_text() -> None:
    app = run(source="worked", repetition_penalty="1.5")
    app.text_input(key="history.text").set_value("不错x很").run()
    app.button(key="history.add").click().run()
    assert parts(app, "sampling")[-1]["history"] == {"prompt": [], "generated": [2, 0]}


def test_a_kept_step_is_a_source_with_its_settings() -> None:
    app = run(source="step")
    assert "Nothing has been generated" in app.info[0].value
    app.session_state["seed"] = 5
    app.session_state["temperature"] = 1.4
    app.session_state["top_k"] = 30
    go_to(app, "generation")
    for _ in range(3):
        app.button(key="generation.step").click().run()
    app.session_state["temperature"] = 1.0
    go_to(app, "sampling")
    assert not app.exception
    runs = app.session_state["generation.runs"]
    run_ = next(iter(runs.values()))
    path = run_.tree.path(run_.node)
    assert len(path) == 3
    data, _settings, _result, rest = parts(app, "sampling")
    assert rest["history"] == {
        "prompt": list(run_.tree.prompt_ids),
        "generated": [node.token_id for node in path[:2]],
    }
    lm = run_.tree.lm
    again = lm([*run_.tree.prompt_ids, *(node.token_id for node in path[:2])])[-1].numpy()
    np.testing.assert_allclose(np.frombuffer(data, dtype=np.float32), again, atol=1e-3)
    app.button(key="kept.take").click().run()
    assert (app.session_state["temperature"], app.session_state["top_k"]) == (1.4, 30)
    table = table_with(app, "final")
    ids = table["id"].tolist()
    np.testing.assert_allclose(table["final"], 100 * run_.result(path[2]).probs[ids].numpy(), atol=1e-9)
    names, _printed = snippet(app)
    np.testing.assert_allclose(table["final"], 100 * names["result"].probs[ids].numpy(), atol=1e-2)


@pytest.mark.parametrize(
    ("text", "tokens", "logits"),
    [
        ("a: 1\nb： 2", ["a", "b"], [1, 2]),
        ("a:b: 1.5", ["a:b"], [1.5]),
        ("1 2\t3;4\n5,6", list("012345"), [1, 2, 3, 4, 5, 6]),
        ("[2.3, 1.5]", ["0", "1"], [2.3, 1.5]),
        ('{"x": -1, "y": 1e30}', ["x", "y"], [-1, 1e30]),
        ('[["x", 1], {"token": "y", "logit": 2}]', ["x", "y"], [1, 2]),
        ('[{"token": "x", "logprob": -1.5, "bytes": [120]}]', ["x"], [-1.5]),  # as servers answer
        ('token,logit\nx,1\n"a,b",2', ["x", "a,b"], [1, 2]),
        ("same: 1\nsame: 2", ["same", "same"], [1, 2]),
        ("x: -inf\r\n\r\ny: -0.0", ["x", "y"], [-np.inf, 0]),
        ("\ufeffa: 1", ["a"], [1]),
    ],
)
def test_every_form_of_own_logits_is_read(text: str, tokens: list[str], logits: list[float]) -> None:
    found = read(text)
    names = [str(place) if name is None else name for place, name in enumerate(found.tokens)]
    assert (names, found.logits, found.problems) == (tokens, logits, [])


ANSWERS = {
    "OpenAI, chat": {
        "choices": [
            {
                "logprobs": {
                    "content": [
                        {
                            "token": "Paris",
                            "logprob": -0.0988,
                            "top_logprobs": [
                                {"token": "Paris", "logprob": -0.0988, "bytes": [80]},
                                {"token": "Lyon", "logprob": -4.2, "bytes": [76]},
                                {"token": "x", "logprob": -9999.0, "bytes": [120]},
                            ],
                        }
                    ]
                }
            }
        ]
    },
    "completions": {"choices": [{"logprobs": {"top_logprobs": [{"Paris": -0.0988, "Lyon": -4.2, "x": -9999.0}]}}]},
    "vLLM, prompt": {
        "prompt_logprobs": [
            None,
            {
                "5": {"logprob": -0.0988, "rank": 1, "decoded_token": "Paris"},
                "7": {"logprob": -4.2, "rank": 2, "decoded_token": "Lyon"},
                "9": {"logprob": -np.inf, "rank": 3, "decoded_token": "x"},
            },
        ]
    },
    "SGLang": {
        "meta_info": {"output_top_logprobs": [[[-0.0988, 5, "Paris"], [-4.2, 7, "Lyon"], [-np.inf, 9, "x"]]]},
    },
    "TGI": {
        "details": {
            "tokens": [{"id": 5, "text": "Paris", "logprob": -0.0988}],
            "top_tokens": [
                [
                    {"id": 5, "text": "Paris", "logprob": -0.0988},
                    {"id": 7, "text": "Lyon", "logprob": -4.2},
                    {"id": 9, "text": "x", "logprob": -9999.0},
                ]
            ],
        }
    },
    "llama-server": {
        "completion_probabilities": [
            {
                "id": 1,
                "top_logprobs": [
                    {"id": 5, "token": "Paris", "logprob": -0.0988},
                    {"id": 7, "token": "Lyon", "logprob": -4.2},
                    {"id": 9, "token": "x", "logprob": -np.inf},
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("server", ANSWERS)
def test_the_answer_of_a_server_is_read_and_the_mass_it_does_not_tell_is_known(server: str) -> None:
    found = read(json.dumps(ANSWERS[server]))
    assert found.tokens == ["Paris", "Lyon", "x"]
    assert found.logits == [-0.0988, -4.2, -np.inf]  # -9999 is how servers write an impossible token
    assert found.untold == pytest.approx(1 - np.exp(-0.0988) - np.exp(-4.2))
    assert found.ids == ([] if server in ("OpenAI, chat", "completions") else [5, 7, 9])


def test_settings_pasted_as_logits_are_said_to_be_settings() -> None:
    for text in (
        '{"temp": 0.8, "repeat_penalty": 1.1, "top_k": 40}',
        '{"model": "m", "messages": [{"role": "user", "content": "hi"}], "logprobs": true, "top_logprobs": 4}',
        '{"options": {"temperature": 0.2}, "prompt": "The"}',
        "temp: 0.8\nrepeat_penalty: 1.1",
        "curl http://localhost:8000/v1/completions -d '{}'",
    ):
        found = read(text)
        assert found.is_request and not found.logits and not found.problems, text
    assert not read('{"temperature": 1.5, "cold": 2}').is_request  # words
    app = run(source="own", own_logits='{"temp": 0.8, "repeat_penalty": 1.1}')
    assert "settings of a request, not logits" in app.info[0].value and not app.dataframe


def test_the_untold_mass_is_said_and_kept_as_the_rest() -> None:
    app = run(source="own", own_logits=json.dumps(ANSWERS["OpenAI, chat"]))
    table = table_with(app, "T = 1")
    assert table["Token"].tolist() == ["Paris", "all␣others", "Lyon", "x"]
    expected = [np.exp(-0.0988), 1 - np.exp(-0.0988) - np.exp(-4.2), np.exp(-4.2), 0]
    np.testing.assert_allclose(table["T = 1"], 100 * np.array(expected), atol=1e-9)
    assert any("the other tokens share 7.91 %" in caption.value for caption in app.caption)


def test_ids_that_are_given_are_used() -> None:
    found = read("token_id,logprob\n7,-0.5\n9,-1.5\n")
    assert found.ids == [7, 9] and found.logits == [-0.5, -1.5]
    table = table_with(run(source="own", own_logits="token_id,logit\n7,3\n9,2\n"), "T = 1")
    lm = lmcore.load("small-world")
    assert table["id"].tolist()[:2] == [7, 9]
    assert table["Token"].tolist()[0] == visible(lm.tokenizer.token_bytes(7))


def test_a_whole_vocabulary_of_numbers_has_the_names_of_the_model() -> None:
    lm = lmcore.load("small-world")
    numbers = np.random.default_rng(0).normal(size=lm.config.vocab_size)
    app = run(source="own", own_logits="\n".join(map(str, numbers)))
    table = table_with(app, "T = 1")
    assert table["Token"][0] == visible(lm.tokenizer.token_bytes(int(numbers.argmax())))


def test_files_are_read_as_what_would_be_pasted() -> None:
    stored = io.BytesIO()
    np.save(stored, np.array([[0.1, -np.inf, 1e-30]], dtype=np.float32))
    assert read(sources.text_of_file("a.npy", stored.getvalue())).logits == [
        float(np.float32(n)) for n in (0.1, -np.inf, 1e-30)
    ]
    assert read(sources.text_of_file("a.json", b"[1, 2]")).logits == [1, 2]
    assert read(sources.text_of_file("a.csv", "\ufefftoken,logit\n很,1\n".encode())).tokens == ["很"]
    stored = io.BytesIO()
    np.save(stored, np.ones((2, 3)))
    with pytest.raises(ValueError, match="one axis"):
        sources.text_of_file("a.npy", stored.getvalue())


@pytest.mark.parametrize(
    ("text", "problems", "kept"),
    [
        ("a: 1\nwrong\nb: x\nc: 2", [(2, "wrong"), (3, "b: x")], [1, 2]),
        ("a: nan\nb: inf\nc: 1", [(1, "a: nan"), (2, "b: inf")], [1]),
        ('[1, "x", true, null, 2]', [(2, '"x"'), (3, "true"), (4, "null")], [1, 2]),
        ("[1, 2,\nx\n3", [(2, "x")], [1, 2, 3]),
        ('{\n  "a": 1,\n  "b, c": x,\n  "d:e": -2.5,\n}', [(3, '"b, c": x,')], [1, -2.5]),
        ("", [], []),
    ],
)
def test_what_cannot_be_read_is_named_by_line_and_the_rest_is_kept(
    text: str, problems: list[tuple[int, str]], kept: list[float]
) -> None:
    found = read(text)
    assert (found.problems, found.logits) == (problems, kept)


@pytest.mark.slow
def test_300_000_lines_are_read() -> None:
    found = read("\n".join(f"t{i}: {i % 17}" for i in range(300_000)))
    assert len(found.logits) == 300_000 and found.tokens[-1] == "t299999" and not found.problems


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("only: 3", [100]),
        ("0\n0\n0\n0", [25] * 4),
        ("a: 1e30\nb: 1e30\nc: -1e30", [50, 50, 0]),
        ("a: -0.0\nb: 0", [50, 50]),
        ("same: 1\nsame: 1", [50, 50]),
        ("a: -inf\nb: 7", [100, 0]),
    ],
)
@pytest.mark.parametrize("engine", ["lmcore", "transformers", "exllamav2"])
def test_extreme_logits_are_shown_as_they_are(text: str, percent: list[float], engine: str) -> None:
    app = run(source="own", own_logits=text, engine=engine, top_p="0.999", draws="1")
    assert table_with(app, "T = 1")["T = 1"].tolist() == percent
    app.button(key="sampling.draw").click().run()
    assert not app.exception


def test_the_page_names_bad_lines_and_needs_one_possible_token() -> None:
    app = run(source="own", own_logits="a: 1\n<b>: x")
    assert any("Line 2 is not a logit: <b>:␣x" in text.value for text in app.text)
    app = run(source="own", own_logits='{"a": 1,\n"b": "x"}')
    assert any('Entry 2 is not a logit: ["b",␣"x"]' in text.value for text in app.text)
    assert "Give at least one logit" in run(source="own", own_logits="").info[0].value
    assert "Every logit is -inf" in run(source="own", own_logits="a: -inf").info[0].value


def test_a_text_of_its_own_is_sent_without_rounding() -> None:
    data, _settings, _result, rest = parts(run(source="worked"), "sampling")
    assert rest["float"] == 64
    assert np.frombuffer(data, dtype=np.float64).tolist() == list(worked.LOGITS.values())


@pytest.mark.parametrize("weight", [3e38, np.nan])
def test_a_model_whose_numbers_overflow_is_an_error_and_nothing_is_drawn(weight: float) -> None:
    run(model="small-world-none", prompt="我")
    model = session._models().get("small-world-none").model
    scale = next(tensor for name, tensor in model.named_parameters() if "final_norm" in name)
    before = scale.detach().clone()
    try:
        with torch.no_grad():
            scale.fill_(weight)
        app = run(model="small-world-none", prompt=f"overflow {weight}")
    finally:
        with torch.no_grad():
            scale.copy_(before)
    assert "contain NaN or infinity" in app.error[0].value
    assert not app.get("bidi_component")[-1].proto.component_name.endswith("lab") and not app.dataframe
    assert all(button.key != "sampling.draw" for button in app.button)
