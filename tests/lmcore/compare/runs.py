"""Pairs of runs with one difference each, and runs that are the same; on the built-in models and copies of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import tokenizers
import torch
from tokenizers.processors import TemplateProcessing

import lmcore
from lmcore import LanguageModel, SamplingSettings
from lmcore.chat import ChatTemplate
from lmcore.compare import Side
from lmcore.model import Model
from lmcore.tokenizer import PretrainedTokenizer, Tokenizer

TEMPLATE = "{% for m in messages %}<|endoftext|>{{ m.role }}: {{ m.content }}\n{% endfor %}"
TEXT = "The king likes the queen. The weather today is"
PENALTY = {"repetition_penalty": 1.3, "temperature": 0.8, "seed": 1}


def lm() -> LanguageModel:
    """Return the built-in model."""
    return lmcore.load("small-world")


def changed(change: Callable[[Model], object] = lambda model: None, **config: object) -> LanguageModel:
    """Return a copy of the built-in model with something changed in its weights or its config."""
    own = lm()
    model = Model(replace(own.config, **config))
    with torch.no_grad():
        model.load_state_dict(own.model.state_dict(), strict=False)
        change(model)
    return LanguageModel(own.name, model, own.tokenizer, own.end_tokens)


def in_eighths(x: torch.Tensor) -> None:
    """Round a tensor to 16 levels in each block of 32, as Q4_0 does."""
    blocks = x.view(-1, 32)
    scale = blocks.abs().amax(1, keepdim=True) / 8
    blocks.copy_((blocks / scale).round().clamp(-8, 7) * scale)


def with_bos() -> LanguageModel:
    """Return the built-in model with a tokenizer that puts a BOS before every text."""
    own = lm()
    library = tokenizers.Tokenizer.from_str(own.tokenizer.definition)
    library.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", own.tokenizer.special_tokens["<|endoftext|>"])]
    )
    return LanguageModel("with-bos", own.model, PretrainedTokenizer(library), own.end_tokens)


def other_words() -> LanguageModel:
    """Return a random model with another vocabulary, in which words are longer or shorter."""
    tokenizer = Tokenizer.train(["The", " king", " likes", " weather", " is"] * 3, 290)
    config = replace(lm().config, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(0)
    return LanguageModel("other-words", Model(config), tokenizer)


def side(model: LanguageModel | None = None, text: str | None = TEXT, **given: object) -> Side:
    """Return a side that reads the text."""
    return Side(model=model or lm(), text=text, **{"settings": SamplingSettings(seed=1), **given})


def _sampler(**values: object) -> SamplingSettings:
    return SamplingSettings(**{"seed": 1, **values})


def _chat(template: str = TEMPLATE, content: str = "The king", **options: object) -> Side:
    return side(
        None, None, messages=({"role": "user", "content": content},), template=ChatTemplate(template), options=options
    )


def _rules(engine: str, **values: object) -> SamplingSettings:
    return replace(_sampler(**values), rules=lmcore.preset(engine).rules)


def different() -> dict[str, tuple[str, Side, Side]]:
    """Return pairs that differ in one thing: name -> the stage at which they part, A and B."""
    shifted = _sampler(top_p=0.9)
    own = {"temperature": 0.6, "top_k": 20}
    return {
        # what is read
        "whitespace": ("text", side(), side(text="The king likes the queen.  The weather today is")),
        "trailing space": ("text", side(), side(text=TEXT + " ")),
        "line end": ("text", side(text="The king\nlikes"), side(text="The king\r\nlikes")),
        "composed character": ("text", side(text="caf\u00e9"), side(text="cafe\u0301")),
        "template": ("text", _chat(), _chat(TEMPLATE.replace(": ", ":"))),
        "template's date": (
            "text",
            _chat(TEMPLATE + "{{ day }}", day="Monday"),
            _chat(TEMPLATE + "{{ day }}", day="Tuesday"),
        ),
        "generation prompt": (
            "text",
            _chat(TEMPLATE + "{% if add_generation_prompt %}assistant: {% endif %}"),
            _chat(TEMPLATE + "{% if add_generation_prompt %}assistant: {% endif %}", add_generation_prompt=False),
        ),
        # how it is cut
        "BOS": ("ids", side(), side(with_bos())),
        "BOS left out": ("ids", side(with_bos()), side(with_bos(), begin=False)),
        "control token as text": ("ids", side(text="a<|endoftext|>b", control=True), side(text="a<|endoftext|>b")),
        "control token of a user": (
            "ids",
            _chat(content="x<|endoftext|>"),
            _chat(content="x<|endoftext|>", user_text_stays_text=True),
        ),
        "one token split": ("ids", side(ids=(85, 10)), side(ids=(85, 11))),
        "vocabulary": ("ids", side(), side(other_words())),
        # what the model makes of it
        "dtype": ("logits", side(), side(lmcore.load("small-world:bfloat16"))),
        "quantised tensor": ("logits", side(), side(changed(lambda m: in_eighths(m.blocks[1].mlp.down.weight)))),
        "quantised head": ("logits", side(), side(changed(lambda m: in_eighths(m.token_embedding.weight)))),
        "one weight": ("logits", side(), side(changed(lambda m: m.blocks[0].attn.q.weight[3, 5].add_(0.5)))),
        "RoPE base": ("logits", side(), side(changed(rope_base=20_000.0))),
        "window": ("logits", side(), side(changed(sliding_window=4, local_layers=(0, 1)))),
        "norm's epsilon": ("logits", side(), side(changed(norm_eps=1e-2))),
        "logit scale": ("logits", side(), side(changed(logit_scale=0.9))),
        "another model": ("logits", side(), side(lmcore.load("small-world-untied"))),
        # how a token is drawn
        "temperature": ("settings", side(), side(settings=_sampler(temperature=0.8))),
        "top-p boundary": ("settings", side(settings=shifted), side(settings=_rules("exllamav2", top_p=0.9))),
        "order": (
            "settings",
            side(settings=_sampler(top_p=0.9, temperature=0.7, order=("top_p", "temperature"))),
            side(settings=_sampler(top_p=0.9, temperature=0.7, order=("temperature", "top_p"))),
        ),
        "penalty window": (
            "settings",
            side(settings=SamplingSettings(**PENALTY)),
            side(settings=SamplingSettings(**PENALTY, penalty_last_n=64)),
        ),
        "default of the model's file": (
            "settings",
            side(settings=lmcore.preset("vllm", seed=1)),
            side(settings=lmcore.preset("vllm", own, seed=1)),
        ),
        "engine's default": (
            "settings",
            side(settings=lmcore.preset("ollama")),
            side(settings=lmcore.preset("ollama-v1")),
        ),
        "logit bias": ("settings", side(), side(settings=_sampler(logit_bias={7: 1.0}))),
        "stop string": ("settings", side(max_new_tokens=4), side(max_new_tokens=4, stop=("the",))),
        "stop token": ("settings", side(max_new_tokens=4), side(max_new_tokens=4, stop_ids=(7,))),
        "length": ("settings", side(max_new_tokens=4), side(max_new_tokens=5)),
        # what comes
        "seed": ("draw", side(), side(settings=_sampler(seed=2))),
        "seed, texts": ("draw", side(max_new_tokens=6), side(max_new_tokens=6, settings=_sampler(seed=2))),
    }


def same() -> dict[str, tuple[Side, Side]]:
    """Return pairs that are the same although they are made apart, or differ in what is not at work."""
    made: dict[str, tuple[Side, Side]] = {}
    for name, (_stage, a, b) in different().items():
        made[f"{name}, A"] = (a, replace(a))
        made[f"{name}, B"] = (b, replace(b))
    return made | {
        "a copy of the weights": (side(), side(changed())),
        "a knob that is off": (side(), side(settings=_sampler(penalty_last_n=64))),
        "a rule of a stage that is off": (side(), side(settings=_rules("exllamav2"))),
        "the order of what is off": (side(), side(settings=_sampler(order=("top_p", "temperature")))),
        "a seed with one candidate": (
            side(settings=SamplingSettings(temperature=0, seed=1), max_new_tokens=4),
            side(settings=SamplingSettings(temperature=0, seed=2), max_new_tokens=4),
        ),
        "a seed with one candidate, nothing drawn": (
            side(settings=SamplingSettings(top_k=1, seed=1)),
            side(settings=SamplingSettings(top_k=1, seed=2)),
        ),
        "a window longer than the text": (side(), side(changed(sliding_window=64, local_layers=(0, 1)))),
    }
