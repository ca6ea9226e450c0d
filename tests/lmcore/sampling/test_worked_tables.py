"""The worked example, 今天天气 -> 很 好 不错 真 差, under single knobs and under every engine."""

import pytest

from lmcore.sampling import SamplingSettings, preset, reshape

from .oracles import WORKED


@pytest.mark.parametrize(
    ("knobs", "percent"),
    [
        ({}, [15.55, 6.99, 69.71, 2.57, 5.18]),
        ({"temperature": 0.5}, [4.67, 0.94, 93.75, 0.13, 0.52]),
        ({"temperature": 1.5}, [19.66, 11.53, 53.44, 5.92, 9.44]),
        ({"top_k": 3}, [16.86, 7.58, 75.56, 0, 0]),
        ({"top_p": 0.9}, [16.86, 7.58, 75.56, 0, 0]),
    ],
)
def test_single_knobs_in_percent_to_two_decimals(knobs, percent):
    result = reshape(WORKED, SamplingSettings(**knobs))
    assert [round(100 * p, 2) for p in result.probs.tolist()] == percent


def test_the_kept_words_of_top_p_sum_to_more_than_p_before_renormalising():
    (step,) = reshape(WORKED, SamplingSettings(top_p=0.9)).steps
    assert round(100 * (1 - step.removed_mass), 2) == 92.25


HF = [0.2323, 0.1363, 0.6314, 0, 0]
TWO_LEFT = [0.2689, 0, 0.7311, 0, 0]


@pytest.mark.parametrize(
    ("engine", "knobs", "probs"),
    [
        ("transformers", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, HF),
        ("vllm", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, HF),
        ("llama.cpp", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, TWO_LEFT),
        ("ollama", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, TWO_LEFT),
        ("exllamav2", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, TWO_LEFT),
        ("openai", {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, [0.2090, 0.1226, 0.5681, 0, 0.1004]),
        ("transformers", {"temperature": 0.8, "top_k": 3, "top_p": 0.95}, [0.1330, 0, 0.8670, 0, 0]),
        ("llama.cpp", {"temperature": 0.8, "top_k": 3, "top_p": 0.95}, [0.1268, 0.0466, 0.8266, 0, 0]),
        ("transformers", {"temperature": 1.5, "top_k": 0, "top_p": 0.8, "min_p": 0.2}, HF),
        ("vllm", {"temperature": 1.5, "top_k": 0, "top_p": 0.8, "min_p": 0.2}, TWO_LEFT),
    ],
)
def test_engines_to_four_decimals(engine, knobs, probs):
    result = reshape(WORKED, preset(engine, **knobs))
    assert [round(p, 4) for p in result.probs.tolist()] == probs
