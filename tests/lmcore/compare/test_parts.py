"""Swapping tensors: all of them leave nothing, the one that was changed takes all, against models built by hand."""

import copy
import math

import pytest
import torch

import lmcore
from lmcore.compare.__main__ import main
from lmcore.compare.parts import count_swaps, swaps
from lmcore.distribution import kl_bits, softmax
from tests.lmcore.compare import runs


def found(a: lmcore.LanguageModel, b: lmcore.LanguageModel, n: int = 10) -> dict:
    ids = a.tokenizer.encode(runs.TEXT).ids[:n]
    return {(swap.kind, swap.block): swap for swap in swaps(a, b, ids)}


def kl(a: lmcore.LanguageModel, b: lmcore.LanguageModel, n: int = 10) -> float:
    ids = a.tokenizer.encode(runs.TEXT).ids[:n]
    return float(kl_bits(softmax(a(ids)), softmax(b(ids))).mean())


def test_everything_leaves_exactly_nothing() -> None:
    a, b = runs.lm(), lmcore.load("small-world:bfloat16")
    swap = found(a, b)
    assert len(swap) == count_swaps(a)
    assert swap["everything", None].kl == 0.0 and swap["everything", None].gone == 1.0
    assert swap["as it runs", None].kl == pytest.approx(kl(a, b), abs=1e-9)
    assert found(b, a)["everything", None].kl == 0.0
    with pytest.raises(ValueError, match="one shape"):
        found(a, lmcore.load("small-world-untied"))


def test_the_tensor_that_was_changed_takes_all() -> None:
    b = runs.changed(lambda model: runs.in_eighths(model.blocks[1].mlp.down.weight))
    swap = found(runs.lm(), b)
    for place in (("mlp.down", 1), ("mlp.down", None), ("", 1)):
        assert swap[place].kl == 0.0 and swap[place].gone == 1.0
    for place in (("mlp.down", 0), ("attn.q", None), ("", 0), ("token_embedding", None), ("final_norm", None)):
        assert swap[place].gone == 0.0
    assert swap["as it runs", None].kl == pytest.approx(swap["weights", None].kl) == pytest.approx(kl(runs.lm(), b))


def test_a_swap_is_the_model_built_by_hand() -> None:
    def change(model: torch.nn.Module) -> None:
        runs.in_eighths(model.blocks[0].attn.q.weight)
        runs.in_eighths(model.blocks[2].mlp.up.weight)

    b = runs.changed(change)
    swap = found(runs.lm(), b)
    half = copy.deepcopy(b.model)
    half.blocks[2].mlp.up.weight.data = runs.lm().model.blocks[2].mlp.up.weight.data
    by_hand = lmcore.LanguageModel("half", half, b.tokenizer)
    assert swap["mlp.up", 2].kl == pytest.approx(kl(runs.lm(), by_hand), rel=1e-9)
    assert swap["mlp.up", 2].gone == pytest.approx(1 - swap["mlp.up", 2].kl / swap["weights", None].kl)


def test_the_cache_is_swapped_as_every_position_reads_it() -> None:
    a, eight_bits = runs.lm(), lmcore.load("small-world:kv8")
    swap = found(a, eight_bits)
    assert swap["weights", None].kl == pytest.approx(kl(a, eight_bits)) and swap["weights", None].kl > 0
    assert swap["kv_cache", None].kl == 0.0 and swap["attn.v", None].gone == swap["", 0].gone == 0.0
    assert found(eight_bits, a)["kv_cache", None].kl == found(eight_bits, a)["everything", None].kl == 0.0

    def two_matrices(model: lmcore.Model) -> None:
        runs.in_eighths(model.blocks[1].attn.v.weight)
        runs.in_eighths(model.blocks[2].attn.q.weight)

    b = runs.changed(two_matrices)
    ids, trace = a.tokenizer.encode(runs.TEXT).ids[:10], lmcore.Trace()
    a(ids, trace=trace)
    names = [f"blocks.{block}.attn.{each}" for block in range(4) for each in ("k_rotated", "v")]
    edits = {name: lambda x, name=name: trace[name] for name in names}
    by_hand = float(kl_bits(softmax(a(ids)), softmax(b(ids, edits=edits))).mean())
    swap = found(a, b)
    assert swap["kv_cache", None].kl == pytest.approx(by_hand) and 0 < by_hand < swap["weights", None].kl
    assert swap["kv_cache", 1].kl == pytest.approx(swap["attn.v", 1].kl)  # nothing else of that block differs


def test_equal_weights_leave_nothing_to_explain() -> None:
    swap = found(runs.lm(), runs.changed(rope_base=20_000.0))
    assert swap["weights", None].kl == 0 and math.isnan(swap["attn.q", 0].gone)
    assert swap["as it runs", None].kl > 1e-6  # the config makes the difference


def test_the_command_prints_a_table(tmp_path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text(runs.TEXT, encoding="utf-8")
    assert main(["small-world", "small-world:bfloat16", "--text", str(text), "--parts", "--new", "3"]) == 0
    printed = capsys.readouterr().out
    assert "First difference: logits" in printed and "everything" in printed and "100.0%" in printed
    assert f"{kl(runs.lm(), lmcore.load('small-world:bfloat16'), 99):.6f}" in printed
    for most, code in (("1e-9", 1), ("0.1", 0)):
        assert main(["small-world", "small-world:bfloat16", "--text", str(text), "--at-most", most]) == code
    capsys.readouterr()
    assert main(["small-world", "no-such", "--text", str(text)]) == 2 and "no model" in capsys.readouterr().err
    assert main(["small-world", "small-world", "--text", str(tmp_path / "none")]) == 2
    text.write_text("The king likes the queen. " * 40, encoding="utf-8")
    assert main(["small-world", "small-world", "--text", str(text), "--tokens", "7"]) == 0
    assert "Both read the same 7 ids" in capsys.readouterr().out
