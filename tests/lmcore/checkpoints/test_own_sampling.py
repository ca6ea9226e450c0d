"""The sampler's settings that a model's files hold, read as the file's own words mean them."""

import pytest
from transformers import GenerationConfig

import lmcore
from lmcore.checkpoints.own_sampling import from_generation_config, from_gguf
from tests.lmcore.checkpoints.tiny import write_folder


def test_a_folders_are_those_transformers_writes_beside_it(tmp_path):
    write_folder("llama", tmp_path)
    assert lmcore.load(tmp_path).card.sampling_file == ""
    GenerationConfig(do_sample=True, temperature=0.6, top_k=20, top_p=0.95).save_pretrained(tmp_path)
    card = lmcore.load(tmp_path).card
    assert (dict(card.sampling), card.sampling_file) == (
        {"temperature": 0.6, "top_k": 20, "top_p": 0.95},
        "generation_config.json",
    )
    settings = lmcore.preset("vllm", model=card.sampling)
    assert (settings.temperature, settings.top_k, settings.top_p) == (0.6, 20, 0.95)


@pytest.mark.parametrize("value", [None, "0.9", True, float("nan"), float("inf"), [1], 10**400])
def test_what_is_no_number_is_left_out(value):
    assert from_generation_config({"temperature": 0.6, "top_p": value, "do_sample": True}) == {"temperature": 0.6}


def test_keys_of_gguf_by_our_names_with_the_digits_that_were_typed():
    metadata = {"general.sampling.temp": 0.6000000238418579, "general.sampling.penalty_last_n": 64, "general.name": "m"}
    assert from_gguf(metadata) == {"temperature": 0.6, "penalty_last_n": 64}
