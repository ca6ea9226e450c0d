"""Perplexity and mean KLD against llama.cpp's own logits, of the small world's weights in two GGUF files.

llama.cpp rounds what it multiplies quantised weights with to q8_0, too; lmcore rounds the weights alone. With the same
rounding here the two agree, and without it llama.cpp is farther from the unquantised model.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from torch import nn

import lmcore
from lmcore.analysis.quantisation.costs import Chunk, Cost, Estimate, costs, world_chunks
from lmcore.compare.measures import whole
from lmcore.quantisation import KINDS
from tests.engines import llama_cpp
from tests.engines.servers import python_of
from tests.lmcore.checkpoints.tiny_gguf import interleave

THEIR_LOGITS = """
import json, sys, llama_cpp, numpy
files, chunks = json.load(sys.stdin)
for file in files:
    model = llama_cpp.Llama(file, n_ctx=256, logits_all=True, type_k=0, type_v=0, n_threads=1, verbose=False)
    found = []
    for ids in chunks:
        model.reset()
        model.eval(ids)
        found.append(numpy.array(model.scores[: len(ids)]))
    numpy.save(file + ".npy", numpy.concatenate(found))
"""
_NAMES = {
    **{"attn_norm": "attn_norm", "attn.q": "attn_q", "attn.k": "attn_k", "attn.v": "attn_v", "attn.out": "attn_output"},
    **{"mlp_norm": "ffn_norm", "mlp.gate": "ffn_gate", "mlp.up": "ffn_up", "mlp.down": "ffn_down"},
}


def write(lm: lmcore.LanguageModel, path: Path, kind: gguf.GGMLQuantizationType) -> None:
    """Write the model as llama.cpp reads it, its matrices in a kind of numbers."""
    config, weights = lm.config, {name: x.detach().numpy() for name, x in lm.model.named_parameters()}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.d_mlp)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.rope_base)
    writer.add_rope_dimension_count(config.d_head)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    named = {"token_embedding": "token_embd", "final_norm": "output_norm"}
    for block in range(config.n_layers):
        named |= {f"blocks.{block}.{ours}": f"blk.{block}.{theirs}" for ours, theirs in _NAMES.items()}
    for ours, theirs in named.items():
        numbers = weights[f"{ours}.weight"]
        if ours.endswith((".q", ".k")):
            numbers = interleave(numbers, config.n_heads)
        stored = kind if numbers.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(f"{theirs}.weight", gguf.quants.quantize(numbers, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def in_q8_0(_module: nn.Module, given: tuple[torch.Tensor]) -> torch.Tensor:
    """Round what a matrix is multiplied with, as llama.cpp does."""
    (x,) = given
    return KINDS["q8_0"].blocks_of(x).values.view(x.shape)


def scored(logits: np.ndarray, text: list[Chunk]) -> np.ndarray:
    """Return the rows that are scored, of the logits of all chunks one after the other."""
    ends = np.cumsum([len(chunk.ids) for chunk in text])
    return np.concatenate([logits[end - len(chunk.came) : end] for end, chunk in zip(ends, text, strict=True)])


def kld(base: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return KL(base || other) at each place, in nats."""
    return np.log(2) * whole(torch.from_numpy(base), torch.from_numpy(other)).kl_ab


@pytest.mark.slow
def test_perplexity_and_kld_are_those_of_llama_cpps_logits(tmp_path: Path) -> None:
    if not llama_cpp.installed():
        pytest.skip("needs llama.cpp: `python -m tests.engines.llama_cpp install`")
    lm = lmcore.load("small-world")
    text = world_chunks(lm, 8)
    kinds = {"float32": gguf.GGMLQuantizationType.F32, "q8_0": gguf.GGMLQuantizationType.Q8_0}
    files = {name: tmp_path / f"{name}.gguf" for name in kinds}
    for name, kind in kinds.items():
        write(lm, files[name], kind)
    asked = json.dumps([[*map(str, files.values())], [chunk.ids for chunk in text]])
    command = [str(python_of(llama_cpp.NAME)), "-c", THEIR_LOGITS]
    subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    theirs = {name: scored(np.load(f"{file}.npy"), text) for name, file in files.items()}
    ours: dict[str, Cost] = {cost.variant: cost for cost in costs(lm, list(kinds), text)}

    came = [token for chunk in text for token in chunk.came]
    log_probs = torch.log_softmax(torch.from_numpy(theirs["float32"]).double(), -1)
    perplexity = float(torch.exp(-log_probs[range(len(came)), came].mean()))
    assert ours["float32"].perplexity.value == pytest.approx(perplexity, rel=1e-4)

    other = lmcore.load("small-world:q8_0")
    for module in other.model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(in_q8_0)
    logits = np.concatenate([other(chunk.ids).numpy() for chunk in text])
    wanted = kld(theirs["float32"], theirs["q8_0"])
    rounded_alike = Estimate.of(kld(theirs["float32"], scored(logits, text)) - wanted)
    weights_alone = Estimate.of(ours["q8_0"].kld - wanted)
    assert abs(rounded_alike.value) < 3 * rounded_alike.error
    assert weights_alone.value < -3 * weights_alone.error
