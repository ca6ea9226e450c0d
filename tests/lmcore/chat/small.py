"""Small chat templates and a small model that can chat, for tests."""

from __future__ import annotations

from functools import cache

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers import decoders as library_decoders
from transformers import PreTrainedTokenizerFast

from lmcore import LanguageModel, Model, ModelConfig
from lmcore.chat import ChatTemplate
from lmcore.tokenizer import PretrainedTokenizer
from lmcore.tokenizer.pretrained import beginning

SPECIAL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
TURNS = """
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
TEMPLATES = {
    "turns": TURNS,
    "statements": """{{ bos_token }}
{% set ns = namespace(system='', n=0) %}
{% for m in messages %}
    {% if m.role == 'system' %}{% set ns.system = m.content %}{% continue %}{% endif %}
    {% set ns.n = ns.n + 1 %}
    {% if ns.n == 1 and ns.system %}
[{{ ns.system.split('\\n')[0] | upper }}] {{ m.content[:3] ~ '|' ~ m.content[3:] }}
    {% else %}
{{ loop.index }}. {{ m.role | capitalize }}: {{ (m.content | replace('β', '<a>')).strip() }}
    {% endif %}
{% endfor %}
""",
    "macros": """{%- macro turn(m) %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}{% generation %}{{ caller() if caller else m.content }}<|im_end|>{% endgeneration %}
{%- else %}{{ m.content.split() | join(' ') }}{% endif %}
{% endmacro %}
{%- if tools %}{{ tools | tojson }}
{{ tools[0].function | tojson(indent=2) | indent(2) }}{% endif %}
{%- for m in messages %}{% call turn(m) %}{{ m.content.title() }}{% endcall %}{{ turn(m) }}{% endfor %}
{{- '%s-%s' % (messages|length, messages[0].role) }}{{ messages[0].content.center(9) }}
{{- strftime_now('%Y') }}{{ messages | map(attribute='role') | join(',') }}""",
    "refusing": """{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}
{{ raise_exception('Only user and assistant, not ' + m.role + '!') }}{% endif %}{{ m.content }}{% endfor %}""",
}


def user(content: str) -> dict[str, object]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, object]:
    return {"role": "assistant", "content": content}


def system(content: str) -> dict[str, object]:
    return {"role": "system", "content": content}


def _library() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("a", "t"), ("Ġ", "c"), ("Ġc", "at"), ("Ġ", "T")]
    merges += [("ĠT", "h"), ("ĠTh", "e")]
    tokens = [*SPECIAL, *alphabet, *dict.fromkeys(left + right for left, right in merges)]
    library = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    library.decoder = library_decoders.ByteLevel()
    library.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return library


@cache
def reference() -> PreTrainedTokenizerFast:
    """Return transformers' tokenizer of the small vocabulary."""
    return PreTrainedTokenizerFast(tokenizer_object=_library(), bos_token="<s>", eos_token="</s>")


def chat_model(template: str | None, first: str = "", ends: tuple[str, ...] = ("<|im_end|>",)) -> LanguageModel:
    """Return a random model with a template, whose tokenizer puts `first` before a text."""
    library = _library()
    library.post_processor = beginning(library, first, "small")
    tokenizer = PretrainedTokenizer(library, "small")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, n_layers=1, n_heads=2, d_mlp=16, context_length=512
    )
    torch.manual_seed(3)
    special = tokenizer.special_tokens
    made = template and ChatTemplate(template, {"bos_token": "<s>", "eos_token": "</s>"}, control=tuple(special))
    return LanguageModel("small", Model(config), tokenizer, [special[end] for end in ends], chat_template=made or None)
