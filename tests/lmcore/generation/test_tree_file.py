"""A tree written and read again is the same tree; a file that is broken or hostile is refused in a sentence."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import lmcore
from lmcore.generation import tree_file
from lmcore.generation.tree import GenerationTree, Node

WARM = lmcore.SamplingSettings(temperature=0.9, top_k=50, logit_bias={7: -math.inf, 9: 0.5}, seed=2**64 - 1)
COLD = lmcore.SamplingSettings(temperature=0.0, seed=3, rules=lmcore.sampling.Rules(top_k_ties="all"))


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    torch.manual_seed(2)
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_layers=2, n_heads=4, context_length=48, init_std=0.3
    )
    return lmcore.LanguageModel("random", lmcore.Model(config), tokenizer)


def grown(lm: lmcore.LanguageModel, prompt: str = "今天天气") -> tuple[GenerationTree, Node, Node]:
    """Return a tree of three branches, one of them named and half of it drawn without the cache."""
    tree = GenerationTree(lm, lm.tokenizer.encode(prompt).ids)
    node = tree.root
    for _ in range(40):
        node = tree.draw(node, WARM)
    end = node
    node = tree.take(tree.path(end)[1], 393, WARM)
    for _ in range(5):
        node = tree.draw(node, COLD, use_cache=False)
    node.name = "a <b>name</b>"
    tree.draw(tree.path(end)[3], COLD)
    return tree, tree.path(end)[3], end


@pytest.fixture(scope="module")
def written(lm: lmcore.LanguageModel) -> str:
    tree, present, tip = grown(lm)
    return tree_file.to_json(tree, "今天天气", present, tip)


def restored(lm: lmcore.LanguageModel, text: str | bytes, into: GenerationTree | None = None) -> Any:
    file = tree_file.read(text, lm)
    tree = into or GenerationTree(lm, file.prompt_ids)
    *_, last = file.restore(tree)
    return tree, last


def described(tree: GenerationTree) -> list[tuple[Any, ...]]:
    return [
        (tree.ids(node), node.settings, node.by_hand, node.used_cache, node.name, node.rank, node.candidates)
        for node in tree.nodes()
    ]


def test_a_tree_comes_back_with_ids_settings_and_distributions(lm: lmcore.LanguageModel) -> None:
    tree, present, tip = grown(lm)
    text = tree_file.to_json(tree, "今天天气", present, tip)
    again, last = restored(lm, text.encode())
    assert described(again) == described(tree)
    for old, new in zip(tree.nodes()[1:], again.nodes()[1:], strict=True):
        torch.testing.assert_close(again.result(new).probs, tree.result(old).probs, atol=1e-5, rtol=0)
        assert new.prob == pytest.approx(old.prob, abs=1e-5) and new.log_prob == pytest.approx(old.log_prob, abs=1e-4)
    assert again.ids(last.present) == tree.ids(present) and again.ids(last.tip) == tree.ids(tip)
    assert last.difference < 1e-5 and last.done == last.total == len(tree.nodes()) - 1
    assert json.loads(tree_file.to_json(again, "今天天气", last.present, last.tip))["nodes"] is not None


def test_the_text_goes_on_as_it_would_have(lm: lmcore.LanguageModel) -> None:
    tree, _present, tip = grown(lm)
    again, last = restored(lm, tree_file.to_json(tree, "今天天气", tip, tip))
    for settings in (WARM, COLD):
        assert again.draw(last.tip, settings).token_id == tree.draw(tip, settings).token_id


def test_a_file_is_added_to_what_is_there_and_nothing_twice(lm: lmcore.LanguageModel) -> None:
    tree, present, tip = grown(lm)
    text = tree_file.to_json(tree, "今天天气", present, tip)
    before = described(tree)
    restored(lm, text, into=tree)
    assert described(tree) == before
    other = GenerationTree(lm, tree.prompt_ids)
    kept = other.draw(other.root, lmcore.SamplingSettings(temperature=1.7, seed=99))
    restored(lm, text, into=other)
    assert kept in other.nodes() and len(other.nodes()) == len(tree.nodes()) + 1


def test_numbers_in_the_file_are_not_believed(lm: lmcore.LanguageModel) -> None:
    tree, present, tip = grown(lm)
    whole = json.loads(tree_file.to_json(tree, "今天天气", present, tip))
    for node in whole["nodes"]:
        node["prob"], node["token"] = 0.0, "<script>"
    again, last = restored(lm, json.dumps(whole))
    assert described(again) == described(tree)
    assert last.difference == pytest.approx(max(node.prob for node in tree.nodes()[1:]), abs=1e-5)


def test_a_tree_without_tokens_and_a_look_at_one_that_is_full(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, lm.tokenizer.encode("I").ids)
    again, last = restored(lm, tree_file.to_json(tree, "I", tree.root, tree.root))
    assert again.nodes() == [again.root] and last.tip is again.root
    node = tree.root
    while not tree.is_full(node):
        node = tree.draw(node, COLD)
    again, last = restored(lm, tree_file.to_json(tree, "I", node, node))
    assert again.ids(last.tip) == tree.ids(node) and again.is_full(last.tip)


def change(path: str, value: Any) -> Callable[[dict], None]:
    """Return what sets a value in the file; "nodes.3.id" is the id of the fourth node."""

    def apply(whole: Any) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in way:
            whole = whole[part]
        whole[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("format", "other", "format is 'other'"),
        ("version", 2, "version 2"),
        ("version", True, "version True"),
        ("model", "gemma", "made with the model 'gemma', and 'random' is chosen"),
        ("model", 5, "model is no text"),
        ("vocab_size", 7, "vocab_size is 7"),
        ("prompt", "我", "prompt_ids are not the tokens"),
        ("prompt", "\ud83d", "surrogate"),
        ("prompt_ids", [], "prompt_ids are not"),
        ("prompt_ids", [10**9], "prompt_ids is 1000000000, which is not a whole number"),
        ("prompt_ids", "12", "prompt_ids is no list"),
        ("unknown", 1, "the field 'unknown', which is not known"),
        ("nodes", {}, "nodes is no list"),
        ("nodes", [[]] * 20_001, "nodes is no list of at most 20,000"),
        ("nodes.3", 5, "node 3 is 5, which is no object"),
        ("nodes.3.parent", 3, "parent of node 3 is 3, which is not a whole number from -1 to 2"),
        ("nodes.3.parent", -2, "parent of node 3"),
        ("nodes.3.id", -1, "id of node 3"),
        ("nodes.3.id", 1.0, "id of node 3 is 1.0"),
        ("nodes.3.id", True, "id of node 3 is True"),
        ("nodes.3.settings", 9, "settings of node 3"),
        ("nodes.3.by_hand", 1, "by_hand of node 3 is 1"),
        ("nodes.3.used_cache", "no", "used_cache of node 3"),
        ("nodes.3.name", "x" * 81, "name of node 3 is no text of at most 80"),
        ("nodes.3.token", None, "token of node 3 is no text"),
        ("nodes.3.prob", 1.5, "node 3 has the prob 1.5"),
        ("nodes.3.prob", "1", "node 3 has the prob '1'"),
        ("nodes.3.html", "<b>", "node 3 has the field 'html'"),
        ("settings.0.temperature", -1, "temperature is -1"),
        ("settings.0.temperature", "hot", "temperature is 'hot'"),
        ("settings.0.temperature", 10**400, "settings 0"),
        ("settings.0.seed", None, "seed of settings 0 is null"),
        ("settings.0.logit_bias", [[1]], "settings 0"),
        ("settings.0.logit_bias", [["a", 1]], "logit_bias has the key 'a'"),
        ("settings.0.rules", {"top_k_ties": "some"}, "top_k_ties is 'some'"),
        ("settings.0.rules", {"top_k_ties": []}, "settings 0"),
        ("settings.0.order", ["top_k", "top_k"], "names 'top_k' twice"),
        ("settings.0.order", [{}], "settings 0"),
        ("settings.0.heat", 1, "the field 'heat'"),
        ("present", 400, "present is 400"),
        ("tip", None, "tip is None"),
        ("tip", 0, "not on the way to tip"),
    ],
)
def test_a_wrong_value_is_named(lm: lmcore.LanguageModel, written: str, path: str, value: Any, sentence: str) -> None:
    whole = json.loads(written)
    change(path, value)(whole)
    with pytest.raises(ValueError, match="^This file cannot be opened: ") as refused:
        tree_file.read(json.dumps(whole), lm)
    assert sentence in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is not JSON: line 1, column 1"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no object"),
        ("NaN", "NaN is no number in JSON"),
        ("1" * 5000, "limit"),
        (b"\xff\xfe{}", "byte 0 is not UTF-8"),
        ("{}", "the file has no format"),
        (" " * (2**20 + 1), "1,048,577 bytes"),
        (b"PK\x03\x04", "it is not JSON"),
    ],
)
def test_what_is_no_tree_is_refused(lm: lmcore.LanguageModel, text: str | bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match="^This file cannot be opened: ") as refused:
        tree_file.read(text, lm)
    assert sentence in str(refused.value)


def test_a_missing_field_is_named(lm: lmcore.LanguageModel, written: str) -> None:
    whole = json.loads(written)
    del whole["nodes"][2]["id"]
    with pytest.raises(ValueError, match="node 2 has no id"):
        tree_file.read(json.dumps(whole), lm)


def test_a_prompt_that_a_chat_template_wrote_is_told(lm: lmcore.LanguageModel) -> None:
    text = "今天<|endoftext|>"
    for is_rendered, encoding in enumerate(
        [lm.tokenizer.encode(text), lm.tokenizer.encode(text, special_tokens=True, add_first=False)]
    ):
        tree = GenerationTree(lm, encoding.ids)
        file = tree_file.read(tree_file.to_json(tree, text, tree.root, tree.root), lm)
        assert (file.is_rendered, list(file.prompt_ids)) == (bool(is_rendered), encoding.ids)


def test_an_older_file_told_joint_top_p_as_true_or_false(lm: lmcore.LanguageModel, written: str) -> None:
    for older, now in ((False, "no"), (True, "without min_p")):
        whole = json.loads(written)
        whole["settings"][0]["rules"]["top_p_joint"] = older
        assert tree_file.read(json.dumps(whole), lm).nodes[0].settings.rules.top_p_joint == now


def test_a_token_beyond_the_context_is_refused(lm: lmcore.LanguageModel, written: str) -> None:
    whole = json.loads(written)
    last = whole["nodes"][39]
    for _ in range(10):
        whole["nodes"].append({**last, "parent": whole["tip"]})
        whole["tip"] = len(whole["nodes"]) - 1
    with pytest.raises(ValueError, match="beyond the context, which ends at 48 tokens"):
        tree_file.read(json.dumps(whole), lm)
