"""How text is split into words before merging, by the name that a GGUF file gives the rule (`tokenizer.ggml.pre`).

The file has the name only; llama.cpp knows what stands behind it, and which of its groups of models begin every text
with a token unless the file says otherwise. The patterns are those of the models' own tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenizers import Regex, pre_tokenizers

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class Splitting:
    """A rule.

    Attributes:
        patterns: each in turn cuts the pieces that those before it left, before and after every match.
        adds_first: every text begins with the file's first token, where the file does not say.
        whole_words: a word that is a token is not merged from its parts (`ignore_merges`).
    """

    patterns: tuple[str, ...]
    adds_first: bool = False
    whole_words: bool = False

    def steps(self) -> list[Any]:
        """Return the rule as the `tokenizers` library's steps."""
        splits = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in self.patterns]
        return [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def _llama3(digits: str = r"\p{N}{1,3}", **more: bool) -> Splitting:
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+"
    marks = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return Splitting(("|".join((_CONTRACTION, words, digits, marks, _LINES_AND_SPACES)),), **more)


def _cased(digits: str, contraction: str = "", **more: bool) -> Splitting:
    """Words that begin with capitals or have none, as GPT-4o and Mistral's Tekken cut them."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    words = (rf"[^\r\n\p{{L}}\p{{N}}]?{upper}{pair}{contraction}" for pair in (f"*{lower}+", f"+{lower}*"))
    return Splitting(("|".join((*words, digits, r" ?[^\s\p{L}\p{N}]+[\r\n/]*", _LINES_AND_SPACES)),), **more)


def _gpt2(*before: str) -> Splitting:
    return Splitting((*before, _GPT2_WORDS))


def _deepseek3() -> Splitting:
    punctuation = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    words = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    return Splitting((r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", f"{punctuation}|{words}|{_LINES_AND_SPACES}"))


def _qwen35() -> Splitting:
    words = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    return Splitting((f"{_CONTRACTION}|{words}|{_LINES_AND_SPACES}",))


def _seed_coder() -> Splitting:
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+"
    return Splitting((f"{_CONTRACTION}|{words}|{_LINES_AND_SPACES}",))


DEFAULT = "default"
"""What llama.cpp calls the rule of a file that names none; it warns that ids may be wrong."""

_GROUPS: Mapping[str, Callable[[], Splitting]] = {
    DEFAULT: lambda: Splitting((r"[\p{P}\$\+<=>\^~\|]+", _GPT2_WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais "
    "trillion granite-docling": _gpt2,
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": lambda: _gpt2(r"\p{N}"),
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": lambda: _llama3(
        adds_first=True, whole_words=True
    ),
    "dbrx smaug-bpe chatglm-bpe": _llama3,
    "glm4 glm5": lambda: _llama3(whole_words=True),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2": lambda: _llama3(r"\p{N}"),
    "qwen35": _qwen35,
    "tekken": lambda: _cased(r"\p{N}", adds_first=True, whole_words=True),
    "gpt-4o llama4 kanana2 talkie minimax-m2": lambda: _cased(r"\p{N}{1,3}", f"{_CONTRACTION}?"),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": _deepseek3,
    "deepseek-coder": lambda: Splitting((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")),
    "seed-coder": _seed_coder,
}
SPLITTINGS: Mapping[str, Callable[[], Splitting]] = {
    name: made for names, made in _GROUPS.items() for name in names.split()
}
"""Name -> what makes the rule."""
