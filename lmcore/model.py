"""The model: ids -> token vectors -> blocks -> hidden states -> logits.

Words. Every intermediate has one name, the same in code, on screen and in tests. Recorded by
`forward(ids, trace=trace)`, in this order, i counting the blocks from 0:

    name                            axes                        what it is
    token_embedding                 position, d_model           E[ids]
    position_embedding              position, d_model           what is added (learned, sinusoidal)
    position_bias                   head, query, key            what is added to scores (alibi, relative)
    blocks.i.resid_pre              position, d_model           residual stream entering block i
    blocks.i.attn_norm.scale        position                    what the norm divides by
    blocks.i.attn_norm.out          position, d_model
    blocks.i.attn.q                 head, position, d_head
    blocks.i.attn.k, .v             kv_head, position, d_head
    blocks.i.attn.q_normed          head, position, d_head      with q/k norms, before RoPE
    blocks.i.attn.k_normed          kv_head, position, d_head
    blocks.i.attn.q_rotated         head, position, d_head      after RoPE
    blocks.i.attn.k_rotated         kv_head, position, d_head
    blocks.i.attn.k_kept, .v_kept   kv_head, key, d_head        with int8_cache, as the cache gives them back
    blocks.i.attn.scores            head, query, key            q·k / sqrt(d_head) (+ position_bias)
    blocks.i.attn.visible           query, key                  bool, whether the query sees the key
    blocks.i.attn.masked_scores     head, query, key            -inf where the key is not visible
    blocks.i.attn.sinks             head                        with attention sinks, their scores
    blocks.i.attn.pattern           head, query, key            softmax over the keys
    blocks.i.attn.z                 head, query, d_head         pattern-weighted sum of v
    blocks.i.attn.out               position, d_model
    blocks.i.attn_post_norm.scale, .out                         with sandwich norms
    blocks.i.attn_scaled            position, d_model           with residual_scale, what is added
    blocks.i.resid_mid              position, d_model           resid_pre + attn.out (or the one above)
    blocks.i.mlp_norm.scale, .out   as above
    blocks.i.mlp.gate               position, d_mlp             before the activation (gated MLPs)
    blocks.i.mlp.pre                position, d_mlp             up(x)
    blocks.i.mlp.post               position, d_mlp             after activation (and gating)
    blocks.i.mlp.out                position, d_model
    blocks.i.mlp_post_norm.scale, .out                          with sandwich norms
    blocks.i.mlp_scaled             position, d_model           with residual_scale, what is added
    blocks.i.resid_post             position, d_model           resid_mid + mlp.out (or the one above)
    final_norm.scale, .out          as above
    hidden_state                    position, d_model           final_norm.out, what the head reads
    logits                          position, vocab

With experts, mlp.gate, .pre and .post have the axes position, choice, d_mlp, and four more are recorded:

    blocks.i.mlp.router_logits      position, expert
    blocks.i.mlp.chosen             position, choice            the experts a token goes to, the largest logit first
    blocks.i.mlp.weights            position, choice            what their outputs are multiplied by
    blocks.i.mlp.expert_out         position, choice, d_model   mlp.out is their weighted sum

A model without norms before attention and MLP records no attn_norm and mlp_norm, a block without RoPE no q_rotated and
k_rotated. With a parallel residual, resid_mid is a sum on the way that the MLP does not read.

With a batch of ids [B, S] a leading "batch" axis stands before all of these but position_bias and
attn.visible and attn.sinks, which all sequences share. Each of them can be edited on its way, by the same name:
`forward(ids, edits={name: f})` goes on with f(tensor) in the tensor's place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from lmcore.attention import AttentionContext
from lmcore.block import Block
from lmcore.config import ModelConfig
from lmcore.embedding import TokenEmbedding
from lmcore.experts import ExpertLinear
from lmcore.kv_cache import KVCache
from lmcore.linear import Linear
from lmcore.norm import make_norm
from lmcore.position import POSITION_ENCODINGS
from lmcore.scores import soft_cap, visible_keys
from lmcore.trace import SILENT, Edit, Recorder, Trace


class Model(nn.Module):
    """A decoder-only transformer.

    >>> import torch
    >>> config = ModelConfig(vocab_size=11, d_model=8, n_layers=2, n_heads=2, context_length=16)
    >>> Model(config)(torch.tensor([3, 1, 4])).shape
    torch.Size([3, 11])
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.position = POSITION_ENCODINGS[config.position_encoding](config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.final_norm = make_norm(config)
        self.head = Linear(config.d_model, config.vocab_size, bias=config.head_bias)
        if config.tie_embeddings:
            self.head.weight = self.token_embedding.weight
            self.register_load_state_dict_pre_hook(_require_one_matrix)
            self.register_load_state_dict_post_hook(_tie_again)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all matrices from N(0, init_std^2) and set biases to 0.

        The two matrices that write into the residual stream are drawn smaller by sqrt(2 n_layers),
        so that the stream does not grow with depth (Radford et al. 2019, section 2.3).
        """
        std = self.config.init_std
        nn.init.normal_(self.token_embedding.weight, std=std)
        self.position.reset_parameters(std)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | ExpertLinear):
                writes = name.endswith(("attn.out", "mlp.down"))
                nn.init.normal_(module.weight, std=std / math.sqrt(2 * self.config.n_layers) if writes else std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(
        self,
        ids: Tensor,
        trace: Trace | None = None,
        cache: KVCache | None = None,
        edits: Mapping[str, Edit] | None = None,
    ) -> Tensor:
        """Return the logits of the next token at every position.

        Args:
            ids: token ids [S] or [B, S].
            trace: filled with every intermediate when given.
            cache: when given, ids continue the tokens it holds, and it is advanced.
            edits: name of an intermediate -> what is put in its place.

        Returns:
            Logits [S, vocab_size] or [B, S, vocab_size], in float32 also where the weights are bfloat16.

        Raises:
            ValueError: for ids out of range, more tokens than context_length, or edits of names that do not occur.
        """
        record = Recorder(trace, edits=edits)
        logits = record.record("logits", self.unembed(self.hidden_state(ids, cache, record)), ("position", "vocab"))
        record.check_edits_met()
        return logits

    def hidden_state(self, ids: Tensor, cache: KVCache | None = None, record: Recorder = SILENT) -> Tensor:
        """Return what the head reads at every position, [..., S, d_model]; arguments and errors as in `forward`."""
        start, length = cache.length if cache is not None else 0, ids.shape[-1]
        self._check(ids, start, cache)

        x = record.record("token_embedding", self.token_embedding(ids), ("position", "d_model"))
        if self.config.embedding_scale != 1.0:
            x = x * self.config.embedding_scale
        added = self.position.added(start, length)
        if added is not None:
            added = added.to(x.dtype).expand_as(x)
            x = x + record.record("position_embedding", added, ("position", "d_model"))
        contexts = self._contexts(start, length, record)
        layer_caches = cache if cache is not None else [None] * len(self.blocks)
        for i, (block, context, layer_cache) in enumerate(zip(self.blocks, contexts, layer_caches, strict=True)):
            x = block(x, context, layer_cache, record.under(f"blocks.{i}"))
        if cache is not None:
            cache.length += length
        x = self.final_norm(x, record.under("final_norm"))
        return record.record("hidden_state", x, ("position", "d_model"))

    def unembed(self, hidden: Tensor) -> Tensor:
        """Return the logits [..., vocab_size] the head reads off hidden states [..., d_model], at least float32."""
        logits = self.head(hidden).to(torch.promote_types(hidden.dtype, torch.float32))
        scale, cap = self.config.logit_scale, self.config.logit_softcap
        logits = logits if scale == 1 else logits * scale
        return logits if cap is None else soft_cap(logits, cap)

    def _contexts(self, start: int, length: int, record: Recorder) -> list[AttentionContext]:
        """Return what each block's attention is given; blocks of one kind share it."""
        config, bias = self.config, self.position.score_bias(start, length)
        if bias is not None:
            bias = bias.to(self.token_embedding.weight.dtype)
            bias = record.record("position_bias", bias, ("head", "query", "key"))
        kinds = [(i in config.local_layers, i not in config.unrotated_layers) for i in range(len(self.blocks))]
        contexts = {}
        for local, rotated in set(kinds):
            rotation = self.position.rotation(start, length, local) if rotated else None
            visible = visible_keys(start, length, config.sliding_window if local else None)
            contexts[local, rotated] = AttentionContext(start, rotation, bias, visible)
        return [contexts[kind] for kind in kinds]

    def _check(self, ids: Tensor, start: int, cache: KVCache | None) -> None:
        length, limit = ids.shape[-1], self.config.context_length
        if ids.numel() == 0:
            raise ValueError("ids is empty; give at least one token.")
        if start + length > limit:
            raise ValueError(
                f"{start + length} tokens are more than context_length = {limit}; shorten the text by "
                f"{start + length - limit} tokens."
            )
        if cache is not None and start + length > cache.capacity:
            raise ValueError(f"{start + length} tokens are more than the cache's capacity of {cache.capacity}.")
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= self.config.vocab_size:
            wrong = low if low < 0 else high
            raise ValueError(f"id {wrong} is out of range; ids lie between 0 and {self.config.vocab_size - 1}.")


def _require_one_matrix(model: Model, state_dict: Mapping[str, Tensor], prefix: str, *_options: object) -> None:
    """Check before loading that a tied model is not given a head of its own.

    Raises:
        ValueError: when it is.
    """
    table, head = (state_dict.get(f"{prefix}{name}.weight") for name in ("token_embedding", "head"))
    if table is None or head is None or table.is_meta or head.is_meta or table.data_ptr() == head.data_ptr():
        return
    if not torch.equal(table, head):
        raise ValueError(
            "token_embedding.weight and head.weight differ, and tie_embeddings = True makes them one matrix; "
            "load them into a model with tie_embeddings = False."
        )


def _tie_again(model: Model, _incompatible_keys: object) -> None:
    """Tie after loading: assign=True, or to_empty() before, has put two tensors in place of the one."""
    model.head.weight = model.token_embedding.weight
