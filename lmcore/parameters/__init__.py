"""How large a model is and how much it computes, from its config alone.

    import lmcore
    counted = lmcore.parameters.count(lmcore.parameters.PRESETS["gpt2"])
    counted.total                                             # 124_439_808 parameters
    [(row.name, row.formula, row.count) for row in counted.rows]
    lmcore.parameters.compute(lm.config, past_tokens=99).macs  # one generated token after 99 others

Every row carries its formula twice, in the config's field names and in its numbers, and the count is
the product of those numbers.
"""

from lmcore.parameters.compute import ComputeCount, ComputeRow, compute
from lmcore.parameters.counts import GROUPS, ParameterCount, TensorCount, count, count_model, used_by_a_token
from lmcore.parameters.memory import BYTES_PER_NUMBER, CacheRow, kv_cache_bytes, kv_cache_rows
from lmcore.parameters.presets import PRESETS
from lmcore.parameters.published import Part, PublishedConfig

__all__ = [
    "BYTES_PER_NUMBER",
    "GROUPS",
    "PRESETS",
    "CacheRow",
    "ComputeCount",
    "ComputeRow",
    "ParameterCount",
    "Part",
    "PublishedConfig",
    "TensorCount",
    "compute",
    "count",
    "count_model",
    "kv_cache_bytes",
    "kv_cache_rows",
    "used_by_a_token",
]
