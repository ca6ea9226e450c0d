"""Requests and responses that were pasted, in the forms of four servers, held against the model that gave them."""

import json
import math
from typing import Any

import pytest
import torch

import lmcore
from lmcore.compare import Side, answers, compare, told
from lmcore.requests import RequestError

PROMPT, N = "The king", 4
REQUEST = json.dumps(
    {"prompt": PROMPT, "temperature": 0.8, "seed": 1, "max_tokens": N, "stop": ["\n\n"], "logprobs": 5}
)


def rows(off: float = 0.0) -> list[dict[str, Any]]:
    """Return what the model draws and holds most probable, one log-probability off by so much."""
    lm = lmcore.load("small-world")
    settings = lmcore.preset("vllm", temperature=0.8, seed=1)
    found: list[dict[str, Any]] = []
    for step in lmcore.generate(lm, lm.tokenizer.encode(PROMPT).ids, settings, max_new_tokens=N):
        log_probs = torch.log_softmax(step.logits.double(), -1)
        best = log_probs.topk(5)
        top: dict[str, tuple[int, float]] = {
            lm.tokenizer.decode([i]): (i, v) for v, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        }
        own = float(log_probs[step.token_id])
        found.append({"token": step.token.decode(), "id": step.token_id, "logprob": own, "top": top})
    name = next(iter(found[2]["top"]))
    found[2]["top"][name] = found[2]["top"][name][0], found[2]["top"][name][1] + off
    return found


def responses(off: float = 0.0) -> dict[str, str]:
    """Return the same answer as four servers write it."""
    told_rows = rows(off)
    text = "".join(row["token"] for row in told_rows)
    listed = [
        {
            **{name: row[name] for name in ("token", "id", "logprob")},
            "bytes": list(row["token"].encode()),
            "top_logprobs": [{"token": token, "id": i, "logprob": value} for token, (i, value) in row["top"].items()],
        }
        for row in told_rows
    ]
    columns = {
        "tokens": [row["token"] for row in told_rows],
        "token_logprobs": [row["logprob"] for row in told_rows],
        "top_logprobs": [{token: value for token, (_i, value) in row["top"].items()} for row in told_rows],
    }
    by_id = {
        **columns,
        "tokens": [f"token_id:{row['id']}" for row in told_rows],
        "top_logprobs": [{f"token_id:{i}": value for i, value in row["top"].values()} for row in told_rows],
    }
    probs = [
        {
            **{name: row[name] for name in ("token", "id")},
            "prob": math.exp(row["logprob"]),
            "top_probs": [{"token": token, "id": i, "prob": math.exp(v)} for token, (i, v) in row["top"].items()],
        }
        for row in told_rows
    ]
    return {
        "chat": json.dumps({"choices": [{"message": {"content": text}, "logprobs": {"content": listed}}]}),
        "completion": json.dumps({"choices": [{"text": text, "logprobs": columns}]}),
        "by id": json.dumps({"choices": [{"text": text, "logprobs": by_id}]}),
        "llama-server": json.dumps({"content": text, "completion_probabilities": listed}),
        "llama-server, probs": json.dumps({"content": text, "completion_probabilities": probs}),
        "ollama": json.dumps({"response": text, "logprobs": listed}),
    }


def local(dtype: str = "") -> Side:
    lm = lmcore.load(f"small-world{dtype}")
    settings = lmcore.preset("vllm", temperature=0.8, seed=1)
    return Side(model=lm, text=PROMPT, settings=settings, stop=("\n\n",), stop_ids=(), max_new_tokens=N)


def test_an_answer_is_the_models_own_in_each_form() -> None:
    for form, response in responses().items():
        found = compare(local(), told(REQUEST, response, "vllm"))
        assert found.first_difference is None, (form, found.sentence)
        assert found.places == tuple((i, i) for i in range(1, 1 + N)), form
        states = {each.stage: each.same for each in found.findings}
        assert states == {"text": True, "ids": None, "logits": True, "settings": True, "draw": True}, form


def test_another_dtype_shows_in_the_log_probabilities() -> None:
    for form, response in responses().items():
        found = compare(local(":bfloat16"), told(REQUEST, response, "vllm"))
        assert found.first_difference == "logits" and "log-probabilities" in found.sentence, form
    found = compare(local(), told(REQUEST, responses(off=0.5)["completion"], "vllm"))
    assert found.sentence == "The log-probabilities that are told differ by up to 0.5 nats."
    assert found.first.place == 3 and found.divergence.largest.argmax() == 2


def test_a_request_that_differs_is_blamed_for_what_it_says() -> None:
    response = responses()["completion"]
    request = json.loads(REQUEST)
    for change, stage in (
        ({"prompt": "The king "}, "text"),
        ({"temperature": 0.7}, "settings"),
        ({"top_p": 0.9}, "settings"),
        ({"stop": []}, "settings"),
        ({"seed": 2}, "draw"),
    ):
        assert compare(local(), told(json.dumps(request | change), response, "vllm")).first_difference == stage, change
    del request["seed"]
    other = json.loads(response)
    other["choices"][0]["logprobs"]["tokens"][3] = " cat"
    found = compare(local(), told(json.dumps(request | {"seed": 1}), json.dumps(other), "vllm"))
    assert (found.first_difference, found.parting) == ("draw", 3)


def test_two_answers_are_compared_as_long_as_they_are_the_same() -> None:
    a, b = (told(REQUEST, response, "vllm") for response in (responses()["completion"], responses(0.25)["chat"]))
    found = compare(a, b)
    assert found.first_difference == "logits" and len(found.places) == N
    assert found.divergence.largest == pytest.approx([0, 0, 0.25, 0], abs=1e-9)
    assert (
        found.token(a, int(found.divergence.first_a[0])).decode()
        in json.loads(responses()["completion"])["choices"][0]["logprobs"]["top_logprobs"][0]
    )


def test_what_is_no_answer_is_said() -> None:
    for text, sentence in (
        ("data: {}", "The response is not JSON"),
        ("[1]", "no object"),
        ("[" * 100_000, "no object"),
        ('{"id": 3}', "holds no text"),
        ('{"choices": [{"message": null}]}', "holds no text"),
    ):
        with pytest.raises(RequestError, match=sentence):
            answers.read(text)
    hostile = {"text": "", "logprobs": {"tokens": [None, 3, "x"], "token_logprobs": "no", "top_logprobs": [{"y": "z"}]}}
    assert len(answers.read(json.dumps({"choices": [hostile]})).drawn) == 3
    assert (
        answers.read('{"content": "", "completion_probabilities": [{"token": 3, "logprob": true}, 4]}')
        .drawn[0]
        .log_prob
        is None
    )
