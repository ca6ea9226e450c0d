"""The other views of the generation page: search, the repetition trap, many texts, the cache."""

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.generation.diversity import distinct, self_bleu
from lmcore.generation.repetition import watch_circling
from pages.common.escape import visible
from tests.pages.generation.page import current, press, run, view
from tests.pages.harness import clean, figures, printed, told

pytestmark = pytest.mark.slow


def test_the_more_probable_sentence_that_greedy_misses_is_shown() -> None:
    app = view("search", prompt="I like", **{"search.tokens": "2", "search.width": "3"})
    assert "Greedy misses the more probable sentence" in told(app)
    assert "1,600² sentences" in told(app)
    frame = app.dataframe[-1].value
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("I like").ids
    first = torch.log_softmax(lm(ids)[-1].double(), 0)
    pairs = torch.stack([first[i] + torch.log_softmax(lm([*ids, i])[-1].double(), 0) for i in range(200)])
    best = frame.iloc[0]
    spelled = lm.tokenizer.encode(best["sentence"].replace("␣", " ")).ids
    assert best["ln P"] == pytest.approx(
        float(first[spelled[0]] + torch.log_softmax(lm([*ids, spelled[0]])[-1].double(), 0)[spelled[1]]), abs=1e-4
    )
    assert best["ln P"] >= float(pairs.max()) - 1e-4  # none of these 320,000 is more probable
    greedy = frame[frame["found by"].str.contains("greedy")].iloc[0]
    assert greedy["ln P"] < best["ln P"] and f"{greedy['probability']:.2f} %" in told(app)
    assert float(printed(app).splitlines()[2].split()[0]) == pytest.approx(best["probability"] / 100, rel=1e-4)


def test_where_greedy_is_right_it_is_said() -> None:
    assert "Greedy finds the most probable sentence here" in told(view("search", prompt="The king"))


@pytest.mark.parametrize("prompt", ["小明", "我喜欢"])
def test_the_search_tree_shows_every_sentence_of_the_table(prompt: str) -> None:
    app = view("search", prompt=prompt, lang="zh", **{"search.tokens": "4", "search.width": "5"})
    assert "贪心错过了更可能的句子" in told(app)
    assert len(app.dataframe[-1].value) >= 5


def test_the_circle_of_greedy_is_measured() -> None:
    app = view("trap", prompt="I like", **{"trap.tokens": "80"})
    lm = lmcore.load("small-world")
    greedy = lmcore.generate(
        lm, lm.tokenizer.encode("I like").ids, lmcore.SamplingSettings(temperature=0), max_new_tokens=80
    )
    *_, last = watch_circling(greedy)
    assert f"From token {last.loop.start} on, the text repeats itself" in told(app)
    frame = app.dataframe[-1].value
    np.testing.assert_allclose(frame["probability of the round"], [100 * p for p in last.round_probs()], rtol=1e-6)
    assert printed(app).splitlines()[0] == str(last.loop)
    penalised = view("trap", prompt="I like", **{"trap.tokens": "80", "trap.penalty": "1.5"})
    assert "No loop in 80 tokens" in told(penalised)


def test_texts_under_two_settings_are_those_of_generate() -> None:
    app = view("many", prompt="I like", temperature="1.2", top_p="1", **{"many.texts": "4", "many.temperature": "0.5"})
    frame = app.dataframe[-1].value
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("I like").ids
    texts = []
    for row, (temperature, number) in enumerate([(t, n) for t in (1.2, 0.5) for n in range(4)]):
        settings = lmcore.SamplingSettings(temperature=temperature, seed=5 + number)
        steps = list(lmcore.generate(lm, ids, settings, max_new_tokens=20, stop_ids=[0]))
        texts.append([step.token_id for step in steps])
        assert frame["text"][row] == visible(b"".join(step.token for step in steps))
        mean = np.mean([np.log(float(step.result.initial_probs[step.token_id])) for step in steps])
        assert frame["mean of ln P"][row] == pytest.approx(mean, abs=1e-4)
    first, second = figures(app)[0].data
    for bar, side in ((first, texts[:4]), (second, texts[4:])):
        expected = [distinct(side, n) for n in (1, 2, 3)] + [self_bleu(side)]
        assert [float(text) for text in bar.text] == pytest.approx(expected, abs=1e-3)
    assert printed(app).startswith("[" + repr(distinct(texts[:4], 1)))


def test_time_and_memory_of_the_cache_are_measured() -> None:
    app = view("cache", **{"cache.tokens": "32"})
    frame = app.dataframe[-1].value
    assert frame["tokens"].tolist() == list(range(2, 33, 2))
    assert frame["largest difference of a logit"].max() < 1e-3
    assert frame["bytes in the cache"].tolist() == [4096 * n for n in frame["tokens"]]
    assert (frame["with cache (ms)"] > 0).all() and (frame["without (ms)"] > 0).all()
    assert "4,096 bytes" in told(app)
    assert len(printed(app).splitlines()) == len(frame)


@pytest.mark.parametrize("name", ["write", "search", "trap", "many", "cache", "constraints", "speculation"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("prompt", ["a", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "今天天气" * 64])
def test_every_view_stands_any_prompt(name: str, lang: str, prompt: str) -> None:
    model = "small-world-learned" if len(prompt) > 100 else "small-world"
    app = run(prompt=prompt, lang=lang, model=model, **{"generation.view": name, "many.texts": "2", "many.tokens": "3"})
    assert app.title[0].value
    if "generation.jobs" in app.session_state:
        for job in app.session_state["generation.jobs"].values():
            job.join(60)
            assert job.error is None
    clean(app.run())


def test_ties_and_reported_log_probabilities_are_of_the_text_in_view() -> None:
    app = press(run(), "run")
    path = current(app).node.path()
    lm, prompt = lmcore.load("small-world"), list(current(app).tree.prompt_ids)
    ids = [*prompt, *(step.token_id for step in path)]
    for name in ("ties", "reported"):
        app.button(key=f"generation.view.more.{name}").click().run()
        for job in app.session_state["generation.jobs"].values():
            job.join(60)
        clean(app.run())
        if name == "ties":
            steps = next(frame.value for frame in app.dataframe if "margin (logits)" in frame.value.columns)
            best = lm(ids[:-1])[len(prompt) - 1 :].topk(2).values
            np.testing.assert_allclose(steps["margin (logits)"], best[:, 0] - best[:, 1], atol=1e-4)
            assert len(steps) == len(path)
    table = next(frame.value for frame in app.dataframe if "after every stage" in frame.value.columns)
    np.testing.assert_allclose(table["the model's own"], [step.log_prob for step in path], atol=1e-5)
    np.testing.assert_allclose(table["after every stage"], np.log([step.prob for step in path]), atol=1e-6)
    engines = next(each.value for each in app.table if "Reported by" in each.value.columns)
    assert "SGLang (logprobs);" in engines.loc["after the temperature too", "Reported by"]
    sums = engines["Sum over this text (nats)"]
    assert float(sums["the model's own"]) == pytest.approx(sum(step.log_prob for step in path), abs=1e-3)


def test_ties_of_no_text_say_what_to_do() -> None:
    for name in ("ties", "reported"):
        app = run(**{"generation.view": name})
        assert "Nothing has been generated" in told(app)
        app.button(key="generation.begin").click().run()
        assert app.session_state["generation.view"] == "write"
