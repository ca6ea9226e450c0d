"""Going back, branching and looking change nothing that was not chosen."""

import pytest
import torch

import lmcore
from lmcore.generation.tree import GenerationTree, Node

SETTINGS = lmcore.SamplingSettings(temperature=0.8, top_p=0.9, repetition_penalty=1.2, seed=7)


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    """A small random model with the real vocabulary: its distributions are flat, so a wrong number shows."""
    torch.manual_seed(0)
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_layers=2, n_heads=4, context_length=24, init_std=0.3
    )
    return lmcore.LanguageModel("random", lmcore.Model(config), tokenizer)


def grow(tree: GenerationTree, node: Node, n: int, settings: lmcore.SamplingSettings = SETTINGS, **more: bool) -> Node:
    for _ in range(n):
        node = tree.draw(node, settings, **more)
    return node


def generated(tree: GenerationTree, node: Node) -> list[int]:
    return [step.token_id for step in tree.path(node)]


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_tree_draws_the_text_that_generate_draws(lm: lmcore.LanguageModel, use_cache: bool) -> None:
    tree = GenerationTree(lm, [5, 6, 7])
    end = grow(tree, tree.root, 15, use_cache=use_cache)
    steps = list(lmcore.generate(lm, [5, 6, 7], SETTINGS, max_new_tokens=15, use_cache=use_cache))
    assert generated(tree, end) == [step.token_id for step in steps]
    assert [node.prob for node in tree.path(end)] == [step.prob for step in steps]
    assert tree.ids(end) == [5, 6, 7, *generated(tree, end)]


def test_looking_and_going_back_change_nothing(lm: lmcore.LanguageModel) -> None:
    plain = GenerationTree(lm, [5, 6, 7])
    end = grow(plain, plain.root, 10)
    looked = GenerationTree(lm, [5, 6, 7])
    node = looked.root
    for _ in range(10):
        looked.next_result(node, lmcore.SamplingSettings(temperature=2.0))
        looked.next_result(looked.root, SETTINGS, use_cache=False)
        node = looked.draw(node, SETTINGS)
    assert generated(looked, node) == generated(plain, end)
    again = grow(looked, looked.path(node)[3], 6)  # from the fourth token on: six more are there already
    assert again is node
    assert looked.leaves() == [node]


def test_a_branch_keeps_both_and_the_numbers_of_the_stream(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    end = grow(tree, tree.root, 6)
    third = tree.path(end)[2]
    other = next(i for i in range(300, 400) if i != tree.path(end)[3].token_id)
    taken = tree.take(third, other, SETTINGS)
    assert taken.by_hand and taken.parent is third
    branch = grow(tree, taken, 3)
    assert tree.leaves() == [end, branch]
    assert tree.path(branch)[:3] == tree.path(end)[:3]
    # The fifth token is drawn with the fifth number, though no number was used for the fourth.
    generator = lmcore.sampling.new_generator(7)
    uniforms = torch.rand(5, dtype=torch.float64, generator=generator)
    fifth = tree.path(branch)[4]
    sums = tree.result(fifth).probs.cumsum(0)
    assert int((sums <= uniforms[4] * sums[-1]).sum()) == fifth.token_id


def test_a_node_keeps_the_distribution_and_settings_it_was_drawn_with(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5, 6])
    first = tree.draw(tree.root, SETTINGS)
    cold = lmcore.SamplingSettings(temperature=0.0, seed=1)
    second = tree.draw(first, cold)
    assert first.settings == SETTINGS and second.settings == cold
    logits = lm(tree.ids(first))[-1]
    torch.testing.assert_close(tree.result(second).start.logits, logits, atol=1e-5, rtol=0)
    assert second.token_id == int(logits.argmax()) and second.prob == 1.0


def test_logits_after_branching_are_those_of_the_whole_text(lm: lmcore.LanguageModel) -> None:
    """Keys and values of a branch that was left must not stay in the cache."""
    tree = GenerationTree(lm, [5, 6])
    end = grow(tree, tree.root, 8)
    branch = grow(tree, tree.take(tree.path(end)[1], 333, SETTINGS), 4)
    back = grow(tree, end, 2)
    for node in [*tree.path(branch), *tree.path(back)]:
        expected = lm(tree.ids(node.parent))[-1]
        torch.testing.assert_close(tree.result(node).start.logits, expected, atol=1e-5, rtol=0)


def test_the_context_is_full_one_token_after_its_end(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5] * 23)
    last = grow(tree, tree.root, 2)
    assert not tree.is_full(last.parent) and tree.is_full(last)
    with pytest.raises(ValueError, match="context_length = 24"):
        tree.draw(last, SETTINGS)
    for wrong in ([], [5] * 25):
        with pytest.raises(ValueError, match=f"{len(wrong)} tokens"):
            GenerationTree(lm, wrong)


def test_bad_choices_are_refused(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    with pytest.raises(ValueError, match="seed is None"):
        tree.draw(tree.root, lmcore.SamplingSettings())
    with pytest.raises(ValueError, match="99999"):
        tree.take(tree.root, 99999, SETTINGS)
    assert tree.root.children == []


def test_a_pruned_branch_is_gone_until_it_is_put_back(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    end = grow(tree, tree.root, 4)
    second = tree.path(end)[1]
    branch = grow(tree, tree.take(second, 333, SETTINGS), 2)
    assert tree.branch_start(branch) is tree.path(branch)[2] and tree.branch_start(end) is tree.path(end)[2]
    pruned = tree.prune(tree.branch_start(end))
    assert tree.leaves() == [branch] and tree.branch_start(branch) is tree.path(branch)[0]
    tree.graft(pruned)
    assert tree.leaves() == [end, branch]  # where it was, not at the end
    with pytest.raises(ValueError, match="root"):
        tree.prune(tree.root)
    assert tree.branch_start(tree.root) is tree.root


def test_a_name_stays_with_its_branch(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    end = grow(tree, tree.root, 3)
    end.name = "first"
    longer = grow(tree, end, 2)
    assert tree.branch_name(longer) == "first"  # it has grown since
    branch = tree.take(end, 333, SETTINGS)
    assert tree.branch_name(branch) == tree.branch_name(longer) == ""  # it was the part that both share
    branch.name = "second"
    assert tree.branch_name(grow(tree, branch, 1)) == "second"


def test_nodes_come_parents_first(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    end = grow(tree, tree.root, 3)
    tree.take(tree.path(end)[0], 333, SETTINGS)
    nodes = tree.nodes()
    assert nodes[0] is tree.root and len(nodes) == 5
    assert all(nodes.index(node.parent) < index for index, node in enumerate(nodes) if node.parent)


def test_the_root_has_no_distribution_of_its_own(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5])
    with pytest.raises(ValueError, match="root"):
        tree.result(tree.root)


def test_numbers_of_a_node_are_those_of_its_distribution(lm: lmcore.LanguageModel) -> None:
    tree = GenerationTree(lm, [5, 6])
    for node in tree.path(grow(tree, tree.root, 5)):
        result, logits = tree.result(node), lm(tree.ids(node.parent))[-1].double()
        assert node.prob == float(result.probs[node.token_id]) and node.candidates == result.candidates
        assert node.log_prob == pytest.approx(float(logits.log_softmax(0)[node.token_id]), abs=1e-4)
        assert node.rank == 1 + int((logits > logits[node.token_id]).sum())
