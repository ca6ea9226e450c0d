"""Counts and compute against transformers' models on the meta device, our own model, and published figures."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections import Counter

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lmcore.config import ModelConfig
from lmcore.kv_cache import KVCache
from lmcore.model import Model
from lmcore.parameters import (
    BYTES_PER_NUMBER,
    GROUPS,
    PRESETS,
    PublishedConfig,
    compute,
    count,
    count_model,
    kv_cache_bytes,
    kv_cache_rows,
)

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


def gpt2(n_embd: int, n_layer: int, n_head: int, n_positions: int = 1024) -> nn.Module:
    config = transformers.GPT2Config(n_embd=n_embd, n_layer=n_layer, n_head=n_head, n_positions=n_positions)
    return transformers.GPT2LMHeadModel(config)


def llama_like(family: str, sizes: tuple[int, ...], tied: bool, **fields: int | list[str] | None) -> nn.Module:
    """Build the transformers model of a family from its sizes as config.json gives them."""
    names = (
        "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "max_position_embeddings",
    )  # fmt: skip
    config_class = getattr(transformers, f"{family}TextConfig" if family == "Gemma3" else f"{family}Config")
    config = config_class(
        **dict(zip(names, sizes, strict=True)), tie_word_embeddings=tied, attn_implementation="eager", **fields
    )
    return getattr(transformers, f"{family}ForCausalLM")(config)


def gemma3(sizes: tuple[int, ...]) -> nn.Module:
    layers = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(sizes[2])]
    return llama_like("Gemma3", sizes, True, head_dim=256, sliding_window=512, layer_types=layers)


def t5(d_model: int, n_layers: int, n_heads: int, d_ff: int, feed_forward: str, tied: bool) -> nn.Module:
    config = transformers.T5Config(
        d_model=d_model, num_layers=n_layers, num_heads=n_heads, d_ff=d_ff, d_kv=64,
        feed_forward_proj=feed_forward,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    if not tied:  # transformers 5 ties every T5, whatever its config says
        model.lm_head = nn.Linear(d_model, config.vocab_size, bias=False)
    return model


# Typed from the released config files, in their own field names and apart from the presets.
PEERS = {
    "gpt2": lambda: gpt2(768, 12, 12),
    "gpt2-medium": lambda: gpt2(1024, 24, 16),
    "gpt2-large": lambda: gpt2(1280, 36, 20),
    "gpt2-xl": lambda: gpt2(1600, 48, 25),
    "gpt3-175b": lambda: gpt2(12288, 96, 96, 2048),
    "bert-base": lambda: transformers.BertModel(transformers.BertConfig()),
    "t5-small": lambda: t5(512, 6, 8, 2048, "relu", True),
    "t5-v1.1-small": lambda: t5(512, 8, 6, 1024, "gated-gelu", False),
    "llama-7b": lambda: llama_like("Llama", (32000, 4096, 32, 32, 32, 11008, 2048), False),
    "llama-13b": lambda: llama_like("Llama", (32000, 5120, 40, 40, 40, 13824, 2048), False),
    "llama-65b": lambda: llama_like("Llama", (32000, 8192, 80, 64, 64, 22016, 2048), False),
    "llama-2-7b": lambda: llama_like("Llama", (32000, 4096, 32, 32, 32, 11008, 4096), False),
    "llama-3-8b": lambda: llama_like("Llama", (128256, 4096, 32, 32, 8, 14336, 8192), False),
    "llama-3.2-1b": lambda: llama_like("Llama", (128256, 2048, 16, 32, 8, 8192, 131072), True, head_dim=64),
    "llama-3.2-3b": lambda: llama_like("Llama", (128256, 3072, 28, 24, 8, 8192, 131072), True, head_dim=128),
    "gemma-3-270m": lambda: gemma3((262144, 640, 18, 4, 1, 2048, 32768)),
    "gemma-3-1b": lambda: gemma3((262144, 1152, 26, 4, 1, 6912, 32768)),
    "qwen2.5-0.5b": lambda: llama_like("Qwen2", (151936, 896, 24, 14, 2, 4864, 32768), True),
    "qwen2.5-1.5b": lambda: llama_like("Qwen2", (151936, 1536, 28, 12, 2, 8960, 131072), True),
    "qwen2.5-3b": lambda: llama_like("Qwen2", (151936, 2048, 36, 16, 2, 11008, 32768), True),
    "qwen2.5-7b": lambda: llama_like("Qwen2", (152064, 3584, 28, 28, 4, 18944, 131072), False),
    "qwen3-0.6b": lambda: llama_like("Qwen3", (151936, 1024, 28, 16, 8, 3072, 40960), True, head_dim=128),
    "smollm2-135m": lambda: llama_like("Llama", (49152, 576, 30, 9, 3, 1536, 8192), True),
    "smollm2-360m": lambda: llama_like("Llama", (49152, 960, 32, 15, 5, 2560, 8192), True),
    "smollm2-1.7b": lambda: llama_like("Llama", (49152, 2048, 24, 32, 32, 8192, 8192), True),
}


@st.composite
def small_configs(draw: st.DrawFn) -> ModelConfig:
    """Draw configs of every kind that a model can be built from, few numbers in common between sizes."""
    n_kv_heads = draw(st.integers(1, 3))
    norm = draw(st.sampled_from(["rmsnorm", "layernorm"]))
    return ModelConfig(
        vocab_size=draw(st.integers(1, 23)),
        d_model=draw(st.integers(1, 13)),
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_kv_heads * draw(st.integers(1, 3)),
        n_kv_heads=n_kv_heads,
        d_head=2 * draw(st.integers(1, 4)),
        d_mlp=draw(st.integers(1, 17)),
        context_length=draw(st.integers(6, 19)),
        norm=norm,
        norm_bias=norm == "layernorm" and draw(st.booleans()),
        gated_mlp=draw(st.booleans()),
        position_encoding=draw(st.sampled_from(["rope", "learned", "sinusoidal", "alibi", "relative", "none"])),
        relative_buckets=draw(st.integers(2, 9)),
        tie_embeddings=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        attention_out_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        head_bias=draw(st.booleans()),
    )


# Parameters


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


# Counting a model


def tied_pair(device: str) -> nn.ModuleDict:
    pair = nn.ModuleDict(
        {"table": nn.Embedding(7, 3, device=device), "head": nn.Linear(3, 7, bias=False, device=device)}
    )
    pair["head"].weight = pair["table"].weight
    return pair


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tied_parameter_counts_once(device: str) -> None:
    assert count_model(tied_pair(device)) == 21


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_equal_values_in_separate_memory_count_twice(device: str) -> None:
    pair = tied_pair(device)
    pair["head"].weight = nn.Parameter(pair["table"].weight.detach().clone())
    assert count_model(pair) == 42


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_two_parameters_over_one_storage_count_once(device: str) -> None:
    pair = tied_pair(device)
    pair["head"].weight = nn.Parameter(pair["table"].weight.detach())
    assert pair["head"].weight is not pair["table"].weight
    assert count_model(pair) == 21


def test_halves_of_one_buffer_both_count() -> None:
    buffer = torch.zeros(30)
    assert count_model(nn.ParameterList([nn.Parameter(buffer[:15]), nn.Parameter(buffer[15:])])) == 30


def test_deep_copy_stays_tied_but_is_other_memory() -> None:
    pair = tied_pair("cpu")
    assert count_model(nn.ModuleList([pair, copy.deepcopy(pair)])) == 2 * 21


# Memory


def test_memory_of_the_parameters() -> None:
    counted = count(PRESETS["llama-7b"])
    for dtype, width in BYTES_PER_NUMBER.items():
        assert width == torch.empty((), dtype=getattr(torch, dtype)).element_size()
        assert counted.memory_bytes(dtype) == width * 6_738_415_616


@given(small_configs(), st.integers(1, 6))
def test_kv_cache_bytes_are_those_of_our_cache(config: ModelConfig, length: int) -> None:
    new = torch.zeros(config.n_kv_heads, length, config.d_head)
    held = [tensor.nbytes for layer in KVCache(config) for tensor in layer.extend(0, new, new)]
    assert kv_cache_bytes(config, length) == sum(held)


def test_local_layers_keep_their_window_only() -> None:
    config = PRESETS["gemma-3-1b"]
    one_position = 2 * 256 * 2  # keys and values of one head of 256, two bytes each
    assert kv_cache_bytes(config, 400, "bfloat16") == 26 * 400 * one_position
    assert kv_cache_bytes(config, 2000, "bfloat16") == (4 * 2000 + 22 * 512) * one_position


def test_grouped_heads_shrink_the_cache() -> None:
    assert kv_cache_bytes(PRESETS["llama-2-7b"], 4096, "float16") == 2**31
    assert kv_cache_bytes(PRESETS["llama-3-8b"], 4096, "float16") == 2**29


@pytest.mark.parametrize(
    ("name", "length", "dtype", "message"),
    [
        ("gpt2", -1, "float32", "length must be at least 0, got -1"),
        ("gpt2", 1025, "float32", "1025 positions .* context_length = 1024"),
        ("gpt2", 10, "int4", "dtype must be .* got 'int4'"),
        ("bert-base", 10, "float32", "BERT base .* 'encoder'"),
        ("t5-small", 10, "float32", "T5 v1.0 small .* 'encoder-decoder'"),
    ],
)
def test_impossible_caches_are_refused(name: str, length: int, dtype: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kv_cache_bytes(PRESETS[name], length, dtype)


def test_unknown_dtype_is_refused_for_parameters() -> None:
    with pytest.raises(ValueError, match="got 'float8'"):
        count(PRESETS["gpt2"]).memory_bytes("float8")


# Compute


def test_llama_7b_head_and_mlp() -> None:
    counted = compute(PRESETS["llama-7b"])
    head = next(row for row in counted.rows if row.name == "head")
    assert (head.macs, head.flops) == (131_072_000, 262_144_000)
    assert counted.group_macs["mlp"] == 32 * 135_266_304
    assert 2 * counted.group_macs["mlp"] // 32 == 270_532_608
    assert counted.flops == 2 * counted.macs


@settings(deadline=None)
@given(small_configs(), st.integers(0, 4), st.integers(1, 2))
def test_macs_are_those_that_torch_counts_in_our_model(config: ModelConfig, past: int, new: int) -> None:
    model, cache = Model(config), KVCache(config)
    ids = torch.zeros(past + new, dtype=torch.long)
    with torch.no_grad():
        if past:
            model(ids[:past], cache=cache)
        with FlopCounterMode(display=False) as counter:
            model(ids[past:], cache=cache)
    assert compute(config, past, new).flops == counter.get_total_flops()


@pytest.mark.parametrize("name", ["llama-7b", "llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b"])
def test_prefill_and_decode_are_what_torch_counts_in_transformers(name: str) -> None:
    n_prompt = 600  # longer than Gemma's window
    with torch.device("meta"), torch.no_grad():
        peer = PEERS[name]().eval()
        ids = torch.zeros(1, n_prompt + 1, dtype=torch.long)
        with FlopCounterMode(display=False) as prefill:
            cache = peer(ids[:, :n_prompt], use_cache=True).past_key_values
        argument = "cache" if "cache" in inspect.signature(peer.forward).parameters else "past_key_values"
        with FlopCounterMode(display=False) as decode:
            peer(ids[:, n_prompt:], **{argument: cache})
    assert compute(PRESETS[name], new_tokens=n_prompt).flops == prefill.get_total_flops()
    assert compute(PRESETS[name], past_tokens=n_prompt).flops == decode.get_total_flops()


@given(small_configs(), st.integers(0, 3), st.integers(1, 3))
def test_tokens_one_by_one_cost_the_unmasked_pairs(config: ModelConfig, past: int, new: int) -> None:
    """What a cache decodes token by token is what a prefill computes that skips the masked pairs."""
    together = compute(config, past, new, skip_masked=True)
    one_by_one = [compute(config, past + i) for i in range(new)]
    assert together.macs == sum(step.macs for step in one_by_one)
    assert together.macs_per_token * new == pytest.approx(together.macs)
    assert together.flops_per_token == 2 * together.macs_per_token


@pytest.mark.parametrize(("past", "new"), [(0, 3), (0, 700), (500, 100), (511, 1), (512, 1), (600, 50)])
def test_unmasked_pairs_of_local_layers(past: int, new: int) -> None:
    config = PRESETS["gemma-3-270m"]
    rows = {row.name: row.macs for row in compute(config, past, new, skip_masked=True).rows}
    seen = [(key, query) for query in range(past, past + new) for key in range(query + 1)]
    n_local = sum(query - key < 512 for key, query in seen)
    assert rows["blocks.attn.scores (local)"] == rows["blocks.attn.z (local)"] == 15 * 4 * 256 * n_local
    assert rows["blocks.attn.scores (global)"] == 3 * 4 * 256 * len(seen)


def test_last_logits_only_leaves_one_head_product() -> None:
    config = PRESETS["gpt2"]
    everywhere, last = compute(config, 0, 10), compute(config, 0, 10, last_logits_only=True)
    assert everywhere.macs - last.macs == 9 * 38_597_376
    assert last.rows[-1].formula == "1 x 768 x 50257"


def test_tying_saves_parameters_and_no_compute() -> None:
    config = PRESETS["gpt2"]
    untied = ModelConfig.from_dict(
        {field: getattr(config, field) for field in ModelConfig.__dataclass_fields__} | {"tie_embeddings": False}
    )
    assert count(untied).total > count(config).total
    assert compute(untied, 5).macs == compute(config, 5).macs


@pytest.mark.parametrize(
    ("name", "past", "new", "message"),
    [
        ("gpt2", -1, 1, "past_tokens must be at least 0, got -1"),
        ("gpt2", 0, 0, "new_tokens must be at least 1, got 0"),
        ("gpt2", 1000, 25, "1025 positions .* context_length = 1024"),
        ("bert-base", 0, 1, "BERT base .* 'encoder'"),
    ],
)
def test_impossible_passes_are_refused(name: str, past: int, new: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compute(PRESETS[name], past, new)
