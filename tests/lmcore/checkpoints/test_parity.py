"""Folders and GGUF files of every family give transformers' logits, hidden states and attention patterns."""

from __future__ import annotations

import json
import struct

import gguf
import pytest
import torch
from safetensors.torch import save_file
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import lmcore
from lmcore.analysis import attention_of_query
from lmcore.config import RopeScaling
from lmcore.generation.beam import beam_search
from lmcore.generation.continuations import continuations
from lmcore.generation.exhaustive import exhaustive_search
from lmcore.generation.logits_store import LogitsStore
from tests.families import GGUF_CASES
from tests.lmcore.checkpoints.tiny import CASES, GPT_OSS, tokenizer, write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@torch.inference_mode()
def compare(lm, reference, tolerance=1e-5):
    """Compare everything at two sequences of 23 tokens, relative to the logits' range."""
    ids = torch.randint(0, lm.config.vocab_size, (2, 23), generator=torch.Generator().manual_seed(3))
    theirs = reference(ids, output_hidden_states=True, output_attentions=True)
    trace = lmcore.Trace()
    logits = lm(ids, trace=trace)
    within = {"rtol": 0, "atol": tolerance * max(1.0, float(theirs.logits.max() - theirs.logits.min()))}
    torch.testing.assert_close(logits, theirs.logits, **within)
    for i in range(lm.config.n_layers):
        torch.testing.assert_close(trace[f"blocks.{i}.resid_pre"], theirs.hidden_states[i], **within)
        torch.testing.assert_close(trace[f"blocks.{i}.attn.pattern"], theirs.attentions[i], **within)
    torch.testing.assert_close(trace["hidden_state"], theirs.hidden_states[-1], **within)
    cache = lm.new_cache()
    pieces = torch.cat([lm(piece, cache=cache) for piece in ids[0].split([9, 1, 1, 11, 1])])
    torch.testing.assert_close(pieces, theirs.logits[0], **within)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_folder_equals_transformers(case, tmp_path):
    reference = write_folder(case, tmp_path)
    lm = lmcore.load(tmp_path)
    assert lm.name == tmp_path.name
    compare(lm, reference)


@pytest.mark.slow
@pytest.mark.parametrize("case", GGUF_CASES)
def test_a_gguf_file_equals_transformers(case, tmp_path):
    reference = write_gguf(case, tmp_path / "tiny.gguf")
    lm = lmcore.load(tmp_path / "tiny.gguf")
    assert lm.name == "tiny"
    compare(lm, reference)
    text = "the cat sat 今天天气"
    assert lm.tokenizer.decode(lm.tokenizer.encode(text).ids) == text


def test_the_rows_of_llama_files_are_read_in_the_order_of_hugging_face(tmp_path):
    reference = write_gguf("llama", tmp_path / "llama.gguf")
    lm = lmcore.load(tmp_path / "llama.gguf")
    assert lm.config.rope_layout == "half_split"
    attention = reference.model.layers[1].self_attn
    torch.testing.assert_close(lm.model.blocks[1].attn.q.weight, attention.q_proj.weight)
    torch.testing.assert_close(lm.model.blocks[1].attn.k.weight, attention.k_proj.weight)


def test_shards_and_half_precision_files_are_read(tmp_path):
    reference = write_folder("qwen3", tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    compare(lmcore.load(tmp_path), reference)
    reference.to(torch.bfloat16).save_pretrained(tmp_path / "half")
    tokenizer().save(tmp_path / "half" / "tokenizer.json")
    lm = lmcore.load(tmp_path / "half")
    assert {parameter.dtype for parameter in lm.model.parameters()} == {torch.float32}
    again = type(reference).from_pretrained(tmp_path / "half", dtype=torch.float32, attn_implementation="eager")
    compare(lm, again.eval())


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "BF16", "F16"])
def test_quantized_files_are_the_numbers_they_stand_for(kind, tmp_path):
    quantized = gguf.GGMLQuantizationType[kind]
    reference = write_gguf("gemma3", tmp_path / "tiny.gguf", quantized)
    lm = lmcore.load(tmp_path / "tiny.gguf")
    given = dict(reference.named_parameters())["model.layers.0.mlp.down_proj.weight"].detach()
    packed = gguf.quants.quantize(given.numpy(), quantized)
    expected = torch.tensor(unpacked(packed.tobytes(), kind)).reshape(given.shape)
    torch.testing.assert_close(lm.model.blocks[0].mlp.down.weight.detach(), expected, rtol=0, atol=1e-7)
    assert 0 < (expected - given).abs().max() < 0.1


def unpacked(data: bytes, kind: str) -> list[float]:
    """Return the numbers of some blocks of 32, one at a time, as ggml's quantize_row_* define them."""
    if kind in ("BF16", "F16"):
        return torch.frombuffer(bytearray(data), dtype={"BF16": torch.bfloat16, "F16": torch.float16}[kind]).tolist()
    size = {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20, "Q5_0": 22}[kind]
    numbers: list[float] = []
    for start in range(0, len(data), size):
        block = data[start : start + size]
        (scale,) = struct.unpack_from("<e", block)
        if kind == "Q8_0":
            numbers += [scale * value for value in struct.unpack_from("<32b", block, 2)]
            continue
        nibbles = block[-16:]
        values = [byte & 15 for byte in nibbles] + [byte >> 4 for byte in nibbles]
        if kind == "Q4_0":
            numbers += [scale * (value - 8) for value in values]
        elif kind == "Q4_1":
            (low,) = struct.unpack_from("<e", block, 2)
            numbers += [scale * value + low for value in values]
        else:
            (fifth,) = struct.unpack_from("<I", block, 2)
            numbers += [scale * (value + 16 * (fifth >> i & 1) - 16) for i, value in enumerate(values)]
    return numbers


def test_the_older_fields_of_config_json_mean_the_same(tmp_path):
    write_folder("llama tied, biases, llama3 scaling", tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    table = values.pop("rope_parameters")
    values["rope_theta"] = table.pop("rope_theta")
    values["rope_scaling"] = table
    before = lmcore.load(tmp_path).config
    path.write_text(json.dumps(values))
    assert lmcore.load(tmp_path).config == before
    assert before.rope_scaling == RopeScaling(kind="llama3", factor=8.0) and before.rope_base == 500.0

    write_folder("gemma3", tmp_path)
    before = lmcore.load(tmp_path).config
    values = json.loads(path.read_text())
    del values["rope_parameters"], values["layer_types"]
    values |= {"rope_theta": 1_000_000.0, "rope_local_base_freq": 10_000.0, "sliding_window_pattern": 6}
    path.write_text(json.dumps(values))
    assert lmcore.load(tmp_path).config == before
    assert before.local_layers == (0, 1, 2, 3, 4, 6)


def test_bfloat16_weights_take_half_the_memory_and_give_nearly_the_same(tmp_path):
    write_folder("llama", tmp_path)
    exact, half = lmcore.load(tmp_path), lmcore.load(tmp_path, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in half.model.parameters()} == {torch.bfloat16}
    ids = torch.arange(1, 20)
    difference = (exact(ids).softmax(-1) - half(ids).softmax(-1)).abs().max()
    assert 0 < difference < 0.05
    with pytest.raises(ValueError, match=r"dtype must be torch\.float32 or torch\.bfloat16, got torch\.float16"):
        lmcore.load(tmp_path, dtype=torch.float16)


# ---- what only some families have ----


@torch.inference_mode()
def test_a_cache_of_a_short_text_cannot_go_on_as_a_long_one(tmp_path):
    write_folder("phi3, longrope", tmp_path)
    lm = lmcore.load(tmp_path)
    cache = lm.new_cache()
    lm([1, 2, 3, 4, 5, 6, 7, 8], cache=cache)
    with pytest.raises(ValueError, match=r"texts over 8 tokens otherwise, .* begin again with the whole text"):
        lm([9], cache=cache)
    settings = lmcore.SamplingSettings(temperature=0)
    cached, plain = (
        [step.logits for step in lmcore.generate(lm, [1, 2, 3, 4, 5, 6], settings, max_new_tokens=6, use_cache=use)]
        for use in (True, False)
    )
    for mine, whole in zip(cached, plain, strict=True):
        torch.testing.assert_close(mine, whole, rtol=0, atol=1e-5)
    searched = (
        ([1, 2, 3, 4, 5, 6], lambda ids: list(beam_search(lm, ids, 3, 4))[-1].kept),
        ([1, 2, 3, 4, 5, 6], lambda ids: list(continuations(lm, ids, lmcore.SamplingSettings(seed=1), 2, 4))[-1].texts),
        ([1, 2, 3, 4, 5, 6, 7, 8], lambda ids: list(exhaustive_search(lm, ids, 2, n_best=2))[-1].found),
    )
    for prompt, search in searched:
        for found in search(prompt):
            ids = [*prompt, *found.ids]
            for place, log_prob in enumerate(found.log_probs, start=len(prompt)):
                assert float(lm(ids[:place])[-1].double().log_softmax(-1)[ids[place]]) == pytest.approx(
                    log_prob, abs=1e-5
                )
    store = LogitsStore(lm)
    store.fill([1, 2, 3], list(range(4, 14)))  # over the border in one call
    for length in (3, 6, 8, 9, 12, 7, 10, 8):  # forwards, and back to shorter texts
        ids = list(range(1, length + 1))
        torch.testing.assert_close(store.get(ids).logits, lm(ids)[-1], rtol=0, atol=1e-5)


def test_experts_of_any_number_are_refused_by_their_tensors(tmp_path):
    write_folder("mixtral", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_local_experts": 10**12}))
    with pytest.raises(ValueError, match="expert"):
        lmcore.load(tmp_path)


@pytest.mark.parametrize("case", ["mixtral", "olmoe", "gpt_oss"])
@torch.inference_mode()
def test_what_a_router_does_is_in_the_trace(case, tmp_path):
    reference = write_folder(case, tmp_path)
    lm = lmcore.load(tmp_path)
    ids = torch.arange(1, 20)
    seen = []
    router = reference.model.layers[1].mlp.router if case == "gpt_oss" else reference.model.layers[1].mlp.gate
    router.register_forward_hook(lambda module, given, result: seen.append(result))
    reference(ids[None])
    trace = lmcore.Trace()
    lm(ids, trace=trace)
    ((logits, weights, chosen),) = seen
    torch.testing.assert_close(trace["blocks.1.mlp.router_logits"], logits, rtol=0, atol=1e-5)
    assert trace["blocks.1.mlp.chosen"].equal(chosen)
    torch.testing.assert_close(trace["blocks.1.mlp.weights"], weights, rtol=0, atol=1e-5)
    sums = trace["blocks.1.mlp.weights"].sum(-1)
    assert (sums < 0.99).all() if case == "olmoe" else sums.allclose(torch.ones(19))
    total = (trace["blocks.1.mlp.weights"][..., None] * trace["blocks.1.mlp.expert_out"]).sum(-2)
    torch.testing.assert_close(trace["blocks.1.mlp.out"], total)


@torch.inference_mode()
def test_another_expert_can_be_put_in_the_place_of_a_chosen_one(tmp_path):
    reference = write_folder("mixtral", tmp_path)
    lm = lmcore.load(tmp_path)
    trace = lmcore.Trace()
    lm([3, 1, 4], trace=trace, edits={"blocks.0.mlp.chosen": lambda chosen: torch.tensor([[4, 2]]).expand_as(chosen)})
    experts = reference.model.layers[0].mlp.experts
    x = trace["blocks.0.mlp_norm.out"]
    for choice, expert in enumerate((4, 2)):
        gate, up = (x @ experts.gate_up_proj[expert].T).chunk(2, -1)
        theirs = (torch.nn.functional.silu(gate) * up) @ experts.down_proj[expert].T
        torch.testing.assert_close(trace["blocks.0.mlp.expert_out"][:, choice], theirs, rtol=0, atol=1e-5)
    off = lm([3, 1, 4], trace=(without := lmcore.Trace()), edits={"blocks.0.mlp.router_logits": minus_infinity(2)})
    assert not (without["blocks.0.mlp.chosen"] == 2).any() and off.isfinite().all()


def minus_infinity(expert):
    """Return an edit of router logits that switches an expert off."""

    def edit(logits):
        logits = logits.clone()
        logits[..., expert] = -torch.inf
        return logits

    return edit


@torch.inference_mode()
def test_a_sink_takes_its_share_of_every_pattern(tmp_path):
    write_folder("gpt_oss", tmp_path)
    trace = lmcore.Trace()
    lm = lmcore.load(tmp_path)
    lm([3, 1, 4, 1, 5], trace=trace)
    scores, sinks = trace["blocks.0.attn.masked_scores"].double(), trace["blocks.0.attn.sinks"].double()
    shares = scores.exp() / (scores.exp().sum(-1, keepdim=True) + sinks.exp()[:, None, None])
    torch.testing.assert_close(trace["blocks.0.attn.pattern"].double(), shares, rtol=0, atol=1e-6)
    step = attention_of_query(trace, lm.config, block=0, head=1, position=4)
    torch.testing.assert_close(step.weights, shares[1, 4], rtol=0, atol=1e-6)


def test_a_gguf_file_with_a_tensor_for_each_expert_equals_transformers(tmp_path):
    reference = write_gguf("mixtral", tmp_path / "tiny.gguf", experts_apart=True)
    compare(lmcore.load(tmp_path / "tiny.gguf"), reference)


@torch.inference_mode()
def test_a_folder_in_mxfp4_equals_transformers(tmp_path):
    torch.manual_seed(5)
    wide = GPT_OSS | dict(hidden_size=64, intermediate_size=96, vocab_size=tokenizer().vocab_size)
    reference = GptOssForCausalLM._from_config(GptOssConfig(**wide), attn_implementation="eager").eval()
    tensors = dict(reference.state_dict())
    for name in [name for name in tensors if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, n_in, n_out = tensors.pop(name).shape
        blocks = torch.randint(0, 256, (experts, n_out, n_in // 32, 16), dtype=torch.uint8)
        scales = torch.randint(118, 122, (experts, n_out, n_in // 32), dtype=torch.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        numbers = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        reference.get_parameter(name).copy_(numbers)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    reference.config.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokenizer().save(tmp_path / "tokenizer.json")
    lm = lmcore.load(tmp_path)
    compare(lm, reference)
    assert lm.card.storage["MXFP4"].bits_per_weight == 4.25 and "U8" not in lm.card.storage

    tensors["model.layers.0.mlp.experts.down_proj_scales"] = torch.ones(5, 64, 1, dtype=torch.uint8)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="down_proj_blocks.*16 bytes for each scale"):
        lmcore.load(tmp_path)
