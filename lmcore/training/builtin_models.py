"""Make the built-in models again: `python -m lmcore.training [name ...]`.

Writes weights, record and (for the default model) embedding snapshots into `lmcore/builtin`, or
into `--output`. The same seed and number of threads give the same loss curve.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from tqdm import tqdm

from lmcore import builtin
from lmcore.checkpoints.weights import build, read_weights, save_weights
from lmcore.corpus import HELD_OUT_SEED, Truth, windows
from lmcore.distribution import softmax
from lmcore.language_model import LanguageModel
from lmcore.model import Model
from lmcore.training.loop import TrainingSettings, train

SEED = 20_26
BATCH_SIZE = 16
WINDOW = 128
THREADS = 1
STEPS = 3000
SNAPSHOT_STEPS = (0, 10, 30, 60, 100, 150, 250, 400, 700, 1200, 2000, 3000)


def main() -> None:
    """Train the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(builtin.names())}; default: all")
    parser.add_argument("--output", type=Path, default=builtin.FOLDER, help="folder to write to")
    parser.add_argument("--steps", type=int, help="number of steps, for a quick try")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in builtin.names()]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a built-in model; choose from {', '.join(builtin.names())}.")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or builtin.names():
        make(name, arguments.steps or STEPS, arguments.output)


def make(name: str, steps: int, folder: Path) -> None:
    """Train one built-in model, measure it on held-out text, and write its files."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    tokenizer = builtin.tokenizer()
    config = builtin.configs()[name]
    settings = TrainingSettings(steps=steps)
    model = Model(config)
    snapshots = {0: embedding_of(model)}
    started = time.perf_counter()
    losses, balances = [], []
    progress = tqdm(train(model, batches(SEED), settings), total=steps, desc=name, unit="step")
    for step in progress:
        losses.append(round(step.loss, 5))
        balances.append(round(step.balance, 5))
        progress.set_postfix(loss=f"{step.loss:.3f}", refresh=False)
        if step.step + 1 in SNAPSHOT_STEPS:
            snapshots[step.step + 1] = embedding_of(model)
    seconds = time.perf_counter() - started

    weights = folder / f"{name}.safetensors"
    save_weights(model, weights, torch.float16)
    if name == builtin.DEFAULT:
        named = {str(step): table for step, table in snapshots.items()}
        safetensors.torch.save_file(named, folder / f"{name}.snapshots.safetensors")
    # What ships is what is measured: the rounded weights, read back from the file.
    shipped = LanguageModel(name, build(config, read_weights(weights), weights.name), tokenizer)
    record: dict[str, Any] = {
        "name": name,
        "config": config.to_dict(),
        "training": {
            "steps": steps,
            "batch_size": BATCH_SIZE,
            "window": WINDOW,
            "seed": SEED,
            "threads": THREADS,
            "learning_rate": settings.learning_rate,
            "warmup_steps": settings.warmup_steps,
            "weight_decay": settings.weight_decay,
            "max_gradient_norm": settings.max_gradient_norm,
            "seconds": round(seconds),
            "torch": torch.__version__,
        },
        "held_out": held_out(shipped),
        "loss_curve": losses,
    }
    if config.n_experts is not None:
        record["training"]["balance_weight"] = settings.balance_weight
        record["balance_curve"] = balances
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(record["held_out"], indent=1))


def batches(seed: int) -> Iterator[Tensor]:
    """Yield training batches, ids [BATCH_SIZE, WINDOW + 1], the same for the same seed."""
    for ids in windows(seed, BATCH_SIZE, WINDOW, builtin.tokenizer()):
        yield torch.from_numpy(ids)


def held_out(lm: LanguageModel, n_batches: int = 24) -> dict[str, float]:
    """Measure a model on text it has not seen, and the grammar on the same text.

    Returns:
        loss: mean -ln P of the model, nats per token.
        grammar_loss: the same of the grammar's own exact conditional probabilities, on the same tokens.
        excess: (loss - grammar_loss) / entropy_rate: how far the model is from the best possible.
        perplexity, entropy_rate: exp(loss); the grammar's entropy, nats per token.
        weather_total_variation: between model and grammar, for the token after 今天天气.
        tokens: number of tokens scored.
    """
    truth = Truth(lm.tokenizer)
    loss = grammar_loss = 0.0
    tokens = 0
    for ids in itertools.islice(batches(HELD_OUT_SEED), n_batches):
        log_probs = lm(ids[:, :-1]).log_softmax(-1)
        loss -= log_probs.gather(-1, ids[:, 1:, None]).double().sum().item()
        grammar_loss -= sum(float(truth.log_prob(row.tolist()).sum()) for row in ids)
        tokens += ids[:, 1:].numel()
    prompt = lm.tokenizer.encode("今天天气").ids
    model_probs = softmax(lm(prompt)[-1])
    distance = (model_probs - torch.from_numpy(truth.next_token_probs(prompt))).abs().sum().item() / 2
    return {
        "loss": loss / tokens,
        "grammar_loss": grammar_loss / tokens,
        "excess": (loss - grammar_loss) / tokens / truth.entropy_rate(),
        "perplexity": math.exp(loss / tokens),
        "entropy_rate": truth.entropy_rate(),
        "weather_total_variation": distance,
        "tokens": tokens,
    }


def embedding_of(model: Model) -> Tensor:
    """Return a float16 copy of the token embedding."""
    return model.token_embedding.weight.detach().to(torch.float16)
