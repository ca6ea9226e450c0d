"""Counts against transformers' models on the meta device, our own model, and published figures."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest
import torch
import transformers
from hypothesis import given
from torch import nn

from lmcore.config import ModelConfig
from lmcore.model import Model
from lmcore.parameters import GROUPS, PRESETS, PublishedConfig, compute, count, count_model, kv_cache_rows
from tests.lmcore.parameters.peers import PEERS, small_configs

# Totals as published, or as the released weight files add up.
TOTALS = {
    "curriculum-12x768": 82_594_560,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "bert-base": 109_482_240,
    "t5-small": 60_506_624,
    "t5-v1.1-small": 76_961_152,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-65b": 65_285_660_672,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "gemma-3-270m": 268_098_176,
    "gemma-3-1b": 999_885_952,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
}


@pytest.mark.parametrize("name", TOTALS)
def test_total_is_the_published_one(name: str) -> None:
    assert count(PRESETS[name]).total == TOTALS[name]


@pytest.mark.parametrize("name", PEERS)
def test_preset_counts_as_the_model_of_transformers(name: str) -> None:
    with torch.device("meta"):
        peer = PEERS[name]()
    assert count(PRESETS[name]).total == peer.num_parameters() == count_model(peer)


def test_every_preset_has_an_oracle() -> None:
    assert set(PRESETS) - set(PEERS) == {"curriculum-12x768", "transformer-2017"}


@pytest.mark.slow
@given(small_configs())
def test_rows_are_the_tensors_of_our_model(config: ModelConfig) -> None:
    with torch.device("meta"):
        model = Model(config)
    position = {"learned": "position_embedding", "relative": "position_bias"}.get(config.position_encoding, "")
    found: Counter[str] = Counter()
    for name, parameter in model.named_parameters():  # a tied head is not named a second time
        name = re.sub(r"blocks\.\d+", "blocks", name).removesuffix(".weight")
        found[position if name == "position" else name] += parameter.numel()

    counted = count(config)
    assert {row.name: row.count for row in counted.rows if not row.shared} == found
    assert counted.total == count_model(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, c in PRESETS.items() if not c.extra_parts and c.architecture == "decoder"])
def test_preset_without_extra_parts_is_a_model_of_ours(name: str) -> None:
    with torch.device("meta"):
        assert count_model(Model(PRESETS[name])) == count(PRESETS[name]).total


def test_worked_example_in_its_parts() -> None:
    counted = count(PRESETS["curriculum-12x768"])
    assert counted.group_totals["embedding"] == 4_718_592
    assert counted.group_totals["attention"] + counted.group_totals["mlp"] == 12 * 6_488_064
    assert counted.group_totals["norm"] == 25 * 768 == 19_200
    assert count(PRESETS["curriculum-12x768"], tie_embeddings=False).total == counted.untied_total == 87_313_152


def test_gpt2_head_is_31_percent_and_untied_total() -> None:
    tied, untied = count(PRESETS["gpt2"]), count(PRESETS["gpt2"], tie_embeddings=False)
    assert tied.head_size == 38_597_376
    assert round(100 * tied.head_share, 1) == 31.0
    assert untied.total == tied.untied_total == 163_037_184
    assert untied.tied_total == tied.total
    assert (tied.share("head"), tied.share("embedding")) == (0.0, tied.head_share)
    assert untied.share("head") == untied.share("embedding") == 38_597_376 / 163_037_184


@pytest.mark.parametrize(
    ("name", "head", "percent"),
    [("llama-7b", 131_072_000, 1.95), ("llama-65b", 262_144_000, 0.40), ("gpt3-175b", 617_558_016, 0.35)],
)
def test_head_share(name: str, head: int, percent: float) -> None:
    counted = count(PRESETS[name])
    assert counted.head_size == head
    assert round(100 * counted.head_share, 2) == percent


def test_gpt3_from_its_paper() -> None:
    """96 layers of 12 D^2 + 13 D (matrices, biases, two norms), the embeddings and the final norm, added up by hand."""
    d = 12_288
    assert count(PRESETS["gpt3-175b"]).total == 96 * (12 * d * d + 13 * d) + (50_257 + 2048 + 2) * d == 174_604_259_328
    assert round(100 * 617_558_016 / 175e9, 2) == 0.35  # of the paper's round figure too


def test_bert_has_token_types_pooler_and_a_tied_head() -> None:
    counted = count(PRESETS["bert-base"])
    rows = {row.name: row.count for row in counted.rows}
    assert rows["token_embedding"] == 23_440_896
    assert round(100 * rows["token_embedding"] / counted.total, 1) == 21.4
    assert rows["token_type_embedding"] == 2 * 768
    assert rows["pooler"] + rows["pooler.bias"] == 768 * 768 + 768
    assert rows["head"] == 0
    assert "final_norm" not in rows

    with torch.device("meta"):
        with_head = transformers.BertForPreTraining(transformers.BertConfig())
    own_of_head = with_head.num_parameters() - 768 * 2 - 2 - counted.total  # less the next-sentence classifier
    assert f"{own_of_head:,}" in PRESETS["bert-base"].source


def test_transformer_2017_ties_three_ways() -> None:
    counted = count(PRESETS["transformer-2017"])
    shared = [row for row in counted.rows if row.shared]
    assert [(row.name, row.size, row.count) for row in shared] == [
        ("head", 18_944_000, 0),
        ("encoder.token_embedding", 18_944_000, 0),
    ]
    assert counted.tying_saves == counted.untied_total - counted.total == 2 * 18_944_000 == 37_888_000


def test_transformer_2017_is_torchs_transformer_without_attention_biases() -> None:
    with torch.device("meta"):
        peer = nn.Transformer(
            d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, batch_first=True
        )
    attention_biases = sum(
        p.numel() for n, p in peer.named_parameters() if re.search(r"attn\.(in_proj_bias|out_proj\.bias)$", n)
    )
    final_norms = 2 * 2 * 512  # nn.Transformer adds them, the paper has none
    blocks = sum(p.numel() for p in peer.parameters()) - attention_biases - final_norms
    assert count(PRESETS["transformer-2017"]).total == blocks + 37_000 * 512


def test_tied_head_is_a_row_that_says_so() -> None:
    row = count(PRESETS["gpt2"]).rows[-1]
    assert (row.name, row.count, row.size, row.shared, row.tied_to) == ("head", 0, 38_597_376, True, "token_embedding")
    assert not count(PRESETS["llama-7b"]).rows[-1].shared


def test_bias_stays_beside_a_tied_matrix() -> None:
    config = ModelConfig(vocab_size=50, d_model=8, n_layers=1, n_heads=2, context_length=4, head_bias=True)
    assert {row.name: row.count for row in count(config).rows if row.group == "head"} == {"head": 0, "head.bias": 50}
    assert count(config).tying_saves == 50 * 8


@pytest.mark.parametrize("name", PRESETS)
def test_formulas_evaluate_to_the_sizes(name: str) -> None:
    config = PRESETS[name]
    rows = [(row.symbols, row.formula, row.size) for row in count(config).rows]
    if config.architecture == "decoder":
        rows += [(row.symbols, row.formula, row.macs) for row in compute(config, 3, 1).rows]
        rows += [(row.symbols, row.formula, row.bytes) for row in kv_cache_rows(config, 3)]
    names = {field: getattr(config, field) for field in dir(config) if not field.startswith("_")}
    names |= {"new_tokens": 1, "n_keys": 4, "length": 3, "bytes_per_number": 4}
    for symbols, formula, value in rows:
        assert math.prod(map(int, formula.split(" x "))) == value
        assert eval(symbols, {"__builtins__": {}}, names) == value


def test_formula_reads_as_the_sizes_of_the_matrix() -> None:
    row = next(row for row in count(PRESETS["gpt2"]).rows if row.name == "blocks.attn.q")
    assert (row.formula, row.symbols) == ("12 x 768 x 768", "n_layers * d_model * (n_heads * d_head)")


@given(small_configs())
def test_groups_and_shares_add_up(config: ModelConfig) -> None:
    counted = count(config)
    assert sum(counted.group_totals.values()) == counted.total
    assert math.isclose(sum(counted.share(group) for group in GROUPS), 1.0)
    assert counted.tied_total <= counted.total <= counted.untied_total
    assert {counted.tied_total, counted.untied_total} == {count(config, tied).total for tied in (True, False)}


def test_group_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="'attn'"):
        count(PRESETS["gpt2"]).share("attn")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS)
def test_preset_states_its_sources(name: str) -> None:
    config = PRESETS[name]
    assert isinstance(config, PublishedConfig)
    assert config.title
    assert config.source
    assert config.tie_source


def test_who_ties() -> None:
    untied = {name for name, config in PRESETS.items() if not config.tie_embeddings}
    assert untied == {"llama-7b", "llama-13b", "llama-65b", "llama-2-7b", "llama-3-8b", "qwen2.5-7b", "t5-v1.1-small"}
    assert "not stated" in PRESETS["gpt3-175b"].tie_source
