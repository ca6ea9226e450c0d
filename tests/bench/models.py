"""Real models beside Hugging Face transformers, on the same GGUF files in one run.

    python -m tests.bench.models [--model gemma-3-270m | --model file.gguf] [loading | traced | generation]

Loading is timed in fresh processes, ours without and with a converted copy. The rest alternates, so
that a slow moment of the machine falls on both. Each line is a ratio, ours / transformers'.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

import lmcore
from lmcore.checkpoints.heap import trim_heap
from lmcore.checkpoints.packaged import PACKAGED, _path
from lmcore.checkpoints.weights import own_tensors
from tests.bench.pipeline import alternate, report

N_TOKENS = 64
TEXT = "The capital of France is"
TEXTS = {"smollm2-135m-instruct": TEXT, "gemma-3-270m": "今天天气"}


def main() -> None:
    """Print the ratios and the targets they are held to."""
    if sys.argv[1:2] == ["one-load"]:  # this file's own call
        print(json.dumps(one_load(*sys.argv[2:])))
        return
    parts = {"loading": compare_loading, "traced": compare_traced, "generation": compare_generation}
    parser = argparse.ArgumentParser(prog="python -m tests.bench.models", description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=parts, help="which to run; all when none is named")
    parser.add_argument("--model", default=next(iter(TEXTS)), help=f"{', '.join(TEXTS)}, or the path of a GGUF file")
    given = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as scratch:
        whole = assembled(given.model, Path(scratch)) if given.model in TEXTS else Path(given.model).resolve()
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")
        load = f"load {os.getloadavg()[0]:.1f}"
        print(f"{given.model}; torch {torch.__version__}, {torch.get_num_threads()} threads, {load}\n", flush=True)
        for part in [given.part] if given.part else parts:
            parts[part](given.model, whole)


def assembled(name: str, folder: Path) -> Path:
    """Write the model's file as one, which transformers needs."""
    model = PACKAGED[name]
    path = folder / "whole" / model.filename
    path.parent.mkdir()
    with path.open("wb") as whole:
        for part in model.parts:
            found = _path(*part)
            assert found is not None, model.install
            with found.open("rb") as file:
                shutil.copyfileobj(file, whole)
    return path


def one_load(who: str, name: str, file: str, dtype: str) -> dict[str, float]:
    """Load and run a first forward pass; return the seconds, and the peak memory in bytes beyond what imports took.

    The peak is that of loading and then, for ours, of a traced pass over 64 tokens, without what the trace keeps.
    The tables are what the tokenizers library keeps of the vocabulary and its merges, part of the peak.
    """
    torch.set_num_threads(2)
    # What torch's libraries map and keep for the first products of these sizes is not counted for either.
    lmcore.load()([1, 2, 3])
    for rows in (1, N_TOKENS):
        torch.ones(rows, 640, dtype=getattr(torch, dtype)) @ torch.ones(640, 2048, dtype=getattr(torch, dtype))
    if who == "ours":
        from lmcore.checkpoints import gguf_model  # noqa: F401 - imports are not counted for either

        before, started = resident(), time.perf_counter()
        lm = lmcore.load(name, getattr(torch, dtype))
        lm(lm.tokenizer.encode(TEXTS.get(name, TEXT)).ids)
        seconds = time.perf_counter() - started
        trace = lmcore.Trace()
        lm(list(range(10, 10 + N_TOKENS)), trace=trace)
        peak, weights = resident("VmHWM") - before - trace.nbytes, sum(t.nbytes for t in own_tensors(lm.model).values())
        trim_heap()
        with_tables = resident()
        del lm.tokenizer._as_text  # type: ignore[attr-defined]
        trim_heap()
        tables = with_tables - resident()
    else:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        before, started = resident(), time.perf_counter()
        path = Path(file)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, local_files_only=True, dtype=getattr(torch, dtype)
        )
        with torch.inference_mode():
            model(torch.tensor([tokenizer(TEXTS.get(name, TEXT))["input_ids"]]))
        seconds = time.perf_counter() - started
        peak, weights = resident("VmHWM") - before, sum(parameter.nbytes for parameter in model.parameters())
        tables = 0
    return {"seconds": seconds, "peak": peak, "weights": weights, "tables": tables}


def resident(field: str = "VmRSS") -> int:
    """Return bytes of this process in memory, now or (VmHWM) at most so far; Linux only."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def compare_loading(name: str, whole: Path) -> None:
    """Time loading to the first logits, each in a process of its own."""

    def fresh(who: str, dtype: str = "float32") -> dict[str, float]:
        command = [sys.executable, "-m", "tests.bench.models", "one-load", who, name, str(whole), dtype]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    first, theirs, second = fresh("ours"), fresh("transformers"), fresh("ours")
    report("GGUF to first logits", first["seconds"], theirs["seconds"], 0.2)
    report("the second start, from the converted copy", second["seconds"], theirs["seconds"], 0.2)
    half = [fresh("ours", "bfloat16") for _start in range(2)]
    runs = {"first start": first, "second start": second, "bfloat16, first": half[0], "bfloat16, second": half[1]}
    for what, run in runs.items():
        ratio, without = run["peak"] / run["weights"], (run["peak"] - run["tables"]) / run["weights"]
        verdict = "met" if ratio <= 1.1 else "MISSED"
        weights = f"{run['weights'] / 1e6:.0f} MB of weights"
        print(f"  peak memory, {what}: {ratio:.2f} x of the {weights} (at most 1.1 x: {verdict})")
        print(f"    ({without:.2f} x without the {run['tables'] / 1e6:.0f} MB of the tokenizers library's tables)")
    print(f"    (transformers: {theirs['peak'] / theirs['weights']:.2f} x)")


def reference_of(whole: Path, attention: str) -> torch.nn.Module:
    """Return transformers' model of the file, in float32."""
    from transformers import AutoModelForCausalLM

    options = {"gguf_file": whole.name, "local_files_only": True, "dtype": torch.float32}
    return AutoModelForCausalLM.from_pretrained(whole.parent, attn_implementation=attention, **options).eval()


def compare_traced(name: str, whole: Path) -> None:
    """Time forward passes that keep every intermediate, theirs all hidden states and attention patterns."""
    lm, reference = lmcore.load(name), reference_of(whole, "eager")
    ids = torch.randint(10, lm.config.vocab_size, (N_TOKENS,))

    @torch.inference_mode()
    def theirs() -> torch.Tensor:
        return reference(ids[None], output_hidden_states=True, output_attentions=True, use_cache=False).logits[0]

    report("traced forward", *alternate(lambda: lm(ids, trace=lmcore.Trace()), theirs, 21), 1.0)


def compare_generation(name: str, whole: Path) -> None:
    """Time cached greedy generation."""
    lm = lmcore.load(name)
    reference = reference_of(whole, "sdpa")  # its faster way, where no patterns are asked for
    prompt = lm.tokenizer.encode(TEXTS.get(name, TEXT)).ids
    settings = lmcore.SamplingSettings(temperature=0)

    def generated(model: lmcore.LanguageModel) -> list[int]:
        return [step.token_id for step in lmcore.generate(model, prompt, settings, max_new_tokens=N_TOKENS)]

    @torch.inference_mode()
    def theirs() -> list[int]:
        out = reference.generate(
            torch.tensor([prompt]), max_new_tokens=N_TOKENS, min_new_tokens=N_TOKENS, do_sample=False, pad_token_id=0
        )
        return out[0, len(prompt) :].tolist()

    for dtype, target in ((torch.float32, 1.0), (torch.bfloat16, 0.65)):
        model = lm if dtype == torch.float32 else lmcore.load(name, dtype)
        n = len(generated(model))
        seconds = alternate(partial(generated, model), theirs, 5)
        report(f"generation of {n} tokens in {dtype} against their float32", seconds[0], seconds[1], target)
        read = sum(tensor.nbytes for tensor in own_tensors(model.model).values()) * n / seconds[0]
        print(f"    ({read / 1e9:.1f} GB of weights read a second)", flush=True)
        if model is not lm:
            difference = (lm(prompt)[-1].softmax(-1) - model(prompt)[-1].softmax(-1)).abs().max()
            print(f"    (the greatest difference it makes to a probability after the prompt: {difference:.4f})")


if __name__ == "__main__":
    main()
