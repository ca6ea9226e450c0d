"""Settings written for each server: read back they are the same, and the distance that is told is the one there is."""

import json

import pytest
import torch

from lmcore.distribution import total_variation
from lmcore.requests import SERVERS, read, write
from lmcore.sampling import History, SamplingSettings, preset, reshape

ROWS = [torch.randn(300, generator=torch.Generator().manual_seed(seed)) * 2.5 for seed in range(4)]
SEEN = [History(prompt=(1, 2, 3), generated=(4, 4)) for _row in ROWS]
ASKED = [
    preset("transformers", temperature=0.7, top_k=20, top_p=0.9, repetition_penalty=1.2),
    preset("llama.cpp", temperature=1.4),
    preset("vllm", temperature=1.2, min_p=0.05, presence_penalty=0.5),
    preset("sglang", temperature=0, seed=5),
    SamplingSettings(temperature=0.9, top_n_sigma=1.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_what_is_written_reads_back_as_the_settings_it_claims(server):
    for asked in ASKED:
        written = write(asked, server, ROWS, SEEN)
        again = read(json.dumps(written.request("The")), server)
        assert again.settings == written.settings, (asked, written.body, again.refused)
        assert not [note for note in again.remarks if "no field" in note]
        distances = [
            float(total_variation(reshape(row, asked, seen).probs, reshape(row, again.settings, seen).probs))
            for row, seen in zip(ROWS, SEEN, strict=True)
        ]
        torch.testing.assert_close(written.distances, torch.tensor(distances, dtype=torch.float64))
        if written.is_exact:
            assert written.is_equal, (server, asked)


def test_the_order_of_transformers_is_told_to_llama_server_and_is_then_exact():
    written = write(ASKED[0], "llama-server", ROWS, SEEN)
    assert written.is_exact and not written.was_searched
    assert written.body["samplers"] == ["penalties", "temperature", "top_k", "top_p"]
    assert written.body["repeat_penalty"] == 1.2


def test_where_it_cannot_be_exact_the_search_comes_nearer_than_the_same_numbers():
    asked = preset("llama.cpp", temperature=1.8)
    for server in ("vllm", "sglang", "tgi", "openai"):
        written = write(asked, server, ROWS)
        assert not written.is_exact and written.was_searched
        same = preset(SERVERS[server].preset, temperature=1.8, top_k=40, top_p=0.95, min_p=0.05)
        same_distance = sum(
            float(total_variation(reshape(row, asked).probs, reshape(row, same).probs)) for row in ROWS
        ) / len(ROWS)
        assert float(written.distances.mean()) < 0.8 * same_distance, server


def test_a_server_without_a_knob_keeps_its_own_and_that_is_in_the_distance():
    flat = [torch.zeros(100)]
    written = write(SamplingSettings(), "ollama-v1", flat)  # its top_k of 40 cannot be told otherwise
    assert not written.is_exact and written.distances.tolist() == pytest.approx([0.6])


def test_a_curl_line_has_no_key_but_a_variable_and_survives_quotes():
    line = write(ASKED[0], "vllm", ROWS, SEEN).curl("It's", "m")
    assert "$API_KEY" in line and read(line, "vllm").prompt == "It's"
