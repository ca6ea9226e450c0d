"""Forward passes, generation and sampling beside Hugging Face transformers, on the same random weights in one run.

    python -m tests.bench.pipeline

Each line is a ratio of medians, ours / transformers'; the repetitions of the two alternate, so that
a slow moment of the machine falls on both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import lmcore
from lmcore.checkpoints.families import GPT2, LLAMA
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.weights import build
from lmcore.model import Model
from lmcore.trace import Trace
from tests.bench import sampling

N_TOKENS = 64


def main() -> None:
    """Print the ratios and the targets they are held to."""
    torch.set_num_threads(2)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {N_TOKENS} tokens; times are medians\n")
    for title, family, reference, forward_target, generation_target in (
        ("GPT-2 small, random weights", GPT2, gpt2_small(), 1.0, 0.9),
        ("the built-in size, as a LLaMA, random weights", LLAMA, builtin_size(), 0.5, 0.25),
    ):
        config = family.config_from(Fields(reference.config.to_dict()))
        model = build(config, family.weights_from(reference.state_dict(), config), title).eval()
        print(title)
        compare_forward(model, reference, forward_target)
        compare_generation(model, reference, generation_target)
        del reference, model
    print(f"the sampler chain, V = {sampling.VOCAB_SIZE:,}")
    for row in sampling.compare():
        report(f"{row.chain} ({row.logits} logits)", row.ours_ms / 1e3, row.theirs_ms / 1e3, row.target)


def gpt2_small() -> GPT2LMHeadModel:
    """Return a random transformers GPT-2 of the smallest published size."""
    torch.manual_seed(0)
    return GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="eager").eval()


def builtin_size() -> LlamaForCausalLM:
    """Return a random transformers LLaMA of the built-in model's size."""
    torch.manual_seed(0)
    ours = lmcore.builtin.configs()[lmcore.builtin.DEFAULT]
    config = LlamaConfig(
        vocab_size=ours.vocab_size,
        hidden_size=ours.d_model,
        intermediate_size=ours.d_mlp,
        num_hidden_layers=ours.n_layers,
        num_attention_heads=ours.n_heads,
        max_position_embeddings=ours.context_length,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM._from_config(config, attn_implementation="eager").eval()


@torch.inference_mode()
def compare_forward(model: Model, reference: torch.nn.Module, target: float) -> None:
    """Time a forward pass that keeps every intermediate."""
    ids = torch.randint(0, model.config.vocab_size, (N_TOKENS,))

    def ours() -> torch.Tensor:
        return model(ids, trace=Trace())

    def theirs() -> torch.Tensor:
        return reference(ids[None], output_hidden_states=True, output_attentions=True, use_cache=False).logits[0]

    torch.testing.assert_close(ours(), theirs(), rtol=1e-3, atol=1e-3)
    report("traced forward", *alternate(ours, theirs, 15), target)
    untraced, _ = alternate(lambda: model(ids), theirs, 5)
    print(f"    (the same forward without a trace: {untraced * 1e3:.1f} ms)")


def compare_generation(model: Model, reference: torch.nn.Module, target: float) -> None:
    """Time cached greedy generation of N_TOKENS tokens from a prompt of 8."""
    lm = lmcore.LanguageModel("random", model, _Names(model.config.vocab_size))
    prompt = torch.randint(0, model.config.vocab_size, (8,)).tolist()
    settings = lmcore.SamplingSettings(temperature=0)

    def ours() -> list[int]:
        return [step.token_id for step in lmcore.generate(lm, prompt, settings, max_new_tokens=N_TOKENS)]

    def theirs() -> list[int]:
        with torch.inference_mode():
            length = {"max_new_tokens": N_TOKENS, "min_new_tokens": N_TOKENS}
            out = reference.generate(torch.tensor([prompt]), **length, do_sample=False, pad_token_id=0)
        return out[0, len(prompt) :].tolist()

    same = sum(a == b for a, b in zip(ours(), theirs(), strict=True))
    ours_seconds, theirs_seconds = alternate(ours, theirs, 7)
    report("generation", ours_seconds, theirs_seconds, target)
    weights = sum(parameter.nbytes for parameter in model.parameters())
    bandwidth = weights * N_TOKENS / ours_seconds / 1e9
    print(f"    ({same} of {N_TOKENS} tokens the same; weights are read at {bandwidth:.1f} GB a second)")


class _Names:
    """Just the part of a tokenizer that generation asks: bytes for an id; random weights have no vocabulary."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.special_tokens: dict[str, int] = {}

    def token_bytes(self, token_id: int) -> bytes:
        return str(token_id).encode()


def alternate(ours: Callable[[], object], theirs: Callable[[], object], repetitions: int) -> tuple[float, float]:
    """Return the median seconds of each, run in turns after one run of each to warm up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for repetition in range(repetitions + 1):
        for function, times in zip((ours, theirs), seconds, strict=True):
            started = time.perf_counter()
            function()
            if repetition:
                times.append(time.perf_counter() - started)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def report(what: str, ours: float, theirs: float, target: float) -> None:
    """Print one ratio."""
    verdict = "met" if ours <= target * theirs else "MISSED"
    times = f"{ours * 1e3:.2f} ms / {theirs * 1e3:.2f} ms"
    print(f"  {what}: {times} = {ours / theirs:.3f} x (at most {target} x: {verdict})")


if __name__ == "__main__":
    main()
