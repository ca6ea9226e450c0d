"""Reading a forward pass: what attention did, what each component wrote, where a logit comes from.

Every function takes a traced pass over one sequence, and the model where its weights are needed, and returns exact
numbers: sums that are claimed are returned together with what they leave over.
"""

from lmcore.analysis.blocks.attention import QueryAttention, attention_of_query
from lmcore.analysis.blocks.experts import ExpertAt, expert_loads, experts_at, given_to_experts, routing
from lmcore.analysis.blocks.interventions import check_intervention, each_component, edits_of, effects_alone, next_probs
from lmcore.analysis.blocks.mlp import ActiveUnits, most_active_units
from lmcore.analysis.blocks.residual import ResidualStream, cosines_between_states, norm_scales, residual_stream
from lmcore.analysis.blocks.summary import TensorSummary, summarise
from lmcore.analysis.logits.attribution import Attribution, attribute
from lmcore.analysis.logits.lens import LensLayer, logit_lens
from lmcore.analysis.logits.normaliser import Normaliser
from lmcore.analysis.logits.readout import Readout, by_dimension, read_out
from lmcore.analysis.logits.scoring import Scores, TopTokens, ranks, score, token_probs, top_tokens

__all__ = [
    "ActiveUnits",
    "Attribution",
    "ExpertAt",
    "LensLayer",
    "Normaliser",
    "QueryAttention",
    "Readout",
    "ResidualStream",
    "Scores",
    "TensorSummary",
    "TopTokens",
    "attention_of_query",
    "attribute",
    "by_dimension",
    "check_intervention",
    "cosines_between_states",
    "each_component",
    "edits_of",
    "effects_alone",
    "expert_loads",
    "experts_at",
    "given_to_experts",
    "logit_lens",
    "most_active_units",
    "next_probs",
    "norm_scales",
    "ranks",
    "read_out",
    "residual_stream",
    "routing",
    "score",
    "summarise",
    "token_probs",
    "top_tokens",
]
