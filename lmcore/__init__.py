"""A small glass-box language model: every intermediate between a text and the next token has a name.

import lmcore

lm = lmcore.load("small-world")
enc = lm.tokenizer.encode("今天天气")
trace = lmcore.Trace()
logits = lm(enc.ids, trace=trace)                       # [S, vocab_size]
trace["blocks.0.attn.pattern"]                          # [head, query, key]
result = lmcore.reshape(logits[-1], lmcore.SamplingSettings(temperature=0.8, top_k=50, top_p=0.9))
for step in lmcore.generate(lm, enc.ids, lmcore.SamplingSettings(seed=1), max_new_tokens=20):
    print(step.token, step.prob)
"""

from lmcore import builtin, chat, distribution, parameters
from lmcore.compare import Comparison, compare
from lmcore.config import ModelConfig
from lmcore.constraints import Constraint
from lmcore.generation import GenerationStep, generate
from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel
from lmcore.loading import AvailableModel, available, load
from lmcore.model import Model
from lmcore.moved import find_moved_modules
from lmcore.sampling import History, Reshaped, SamplingSettings, draw, preset, reshape
from lmcore.tokenizer import Encoding, TextStream, Tokenizer
from lmcore.trace import Trace
from lmcore.training import TrainingSettings, TrainingStep, train

find_moved_modules()

__all__ = [
    "AvailableModel",
    "Comparison",
    "Constraint",
    "Encoding",
    "GenerationStep",
    "History",
    "KVCache",
    "LanguageModel",
    "Model",
    "ModelConfig",
    "Reshaped",
    "SamplingSettings",
    "TextStream",
    "Tokenizer",
    "Trace",
    "TrainingSettings",
    "TrainingStep",
    "available",
    "builtin",
    "chat",
    "compare",
    "distribution",
    "draw",
    "generate",
    "load",
    "parameters",
    "preset",
    "reshape",
    "train",
]
