"""Measures of a next-token distribution: softmax, entropy, surprisal, distance, rank.

Notation: V vocab_size; logits and probs are `[..., V]`. Inputs are torch tensors, numpy arrays or plain lists; results
are float64 torch tensors, because what a reader compares (a cumulative sum, a distance of 1e-9) must not be an
artefact of float32. Entropy, surprisal and divergence are in bits (base 2); the training loss alone is in nats.
"""

from lmcore.distribution.checks import ArrayLike, as_tensor, check_logits, check_probs
from lmcore.distribution.measures import (
    effective_vocabulary,
    entropy_bits,
    kl_bits,
    log_softmax,
    loss_nats,
    perplexity,
    softmax,
    surprisal_bits,
    total_variation,
)
from lmcore.distribution.order import Top, largest, rank, top

__all__ = [
    "ArrayLike",
    "Top",
    "as_tensor",
    "check_logits",
    "check_probs",
    "effective_vocabulary",
    "entropy_bits",
    "kl_bits",
    "largest",
    "log_softmax",
    "loss_nats",
    "perplexity",
    "rank",
    "softmax",
    "surprisal_bits",
    "top",
    "total_variation",
]
