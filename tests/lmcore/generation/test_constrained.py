"""A constraint as a setting of a run: from `generate`, over the tree and its file, to the end of the text."""

import json

import pytest
import regex

import lmcore
from lmcore import Constraint, SamplingSettings
from lmcore.constraints import ConstraintRefused
from lmcore.generation import tree_file
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import GenerationTree

WORDS = Constraint("regex", r"( [a-z]+){3}\.")
SETTINGS = SamplingSettings(temperature=1.2, seed=3)


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    return lmcore.load("small-world")


def ids(lm: lmcore.LanguageModel) -> list[int]:
    return lm.tokenizer.encode("The king").ids


def test_texts_fit_the_constraint_and_the_tree_draws_the_text_of_generate(lm):
    for seed in range(4):
        settings = SamplingSettings(temperature=1.5, seed=seed)
        asked = {"max_new_tokens": 60, "stop_ids": lm.end_tokens}
        steps = list(lmcore.generate(lm, ids(lm), settings, constraint=WORDS, **asked))
        drawn = [step.token_id for step in steps]
        assert drawn[-1] in lm.end_tokens
        assert regex.fullmatch(WORDS.text, lm.tokenizer.decode(drawn[:-1]))
        tree = GenerationTree(lm, ids(lm))
        node = tree.root
        for step in steps:
            node = tree.draw(node, settings, constraint=WORDS)
            assert node.token_id == step.token_id and node.prob == pytest.approx(step.prob, abs=1e-6)
            assert node.forbidden == pytest.approx(
                float(step.result.initial_probs[~step.result.allowed].sum()), abs=1e-6
            )
            assert 0 < node.forbidden < 1


def test_a_token_drawn_freely_is_another_branch_than_one_under_a_constraint(lm):
    tree = GenerationTree(lm, ids(lm))
    free, bound = tree.draw(tree.root, SETTINGS), tree.draw(tree.root, SETTINGS, constraint=WORDS)
    assert free is not bound
    assert tree.draw(tree.root, SETTINGS, constraint=WORDS) is bound
    assert tree.result(bound).allowed is not None


def test_a_file_keeps_the_constraint_of_each_token(lm):
    tree = GenerationTree(lm, ids(lm))
    node = tree.draw(tree.root, SETTINGS)
    for _ in range(3):
        other = tree.draw(node if node.constraint else tree.root, SETTINGS, constraint=WORDS)
        node = other
    text = tree_file.to_json(tree, "The king", node, node)
    opened = GenerationTree(lm, ids(lm))
    *_, restored = tree_file.read(text, lm).restore(opened)
    assert [(n.token_id, n.constraint) for n in opened.nodes()] == [(n.token_id, n.constraint) for n in tree.nodes()]
    assert [n.forbidden for n in opened.nodes()] == pytest.approx([n.forbidden for n in tree.nodes()], abs=1e-6)
    assert restored.difference < 1e-5 and opened.path(restored.present)[-1].constraint == WORDS
    whole = json.loads(text)
    for constraints, says in (
        ([["lark", "a"]], "constraint 0: kind is 'lark'"),
        ([["regex"]], "constraint 0 is no pair"),
        ("regex", "constraints is no list"),
        ([], "constraint of node"),
    ):
        with pytest.raises(ValueError, match=says):
            tree_file.read(json.dumps({**whole, "constraints": constraints}), lm)


def test_a_file_without_a_constraint_is_as_it_was(lm):
    tree = GenerationTree(lm, ids(lm))
    node = tree.draw(tree.root, SETTINGS)
    assert "constraint" not in tree_file.to_json(tree, "The king", node, node)


def test_a_run_ends_where_the_constraint_allows_nothing_and_says_why(lm):
    run = GenerationRun(lm, ids(lm), lm.end_tokens)
    run.settings, run.constraint = SETTINGS, WORDS
    assert run.end == "" and run.refusal is None
    run.start()
    assert run.wait(60) and run.end == "stop token" and run.error is None
    masking = run.masking(run.node)
    assert masking is not None and masking.removed_mass == pytest.approx(run.node.forbidden, abs=1e-6)
    assert masking.masked.probs[run.node.token_id] == pytest.approx(run.node.prob, abs=1e-6)
    run.go_to(run.tree.path(run.node)[0])
    run.constraint = Constraint("choices", "something else")
    assert run.end == "constraint" and run.refusal is not None and run.refusal.reason == "left"
    run.step()  # does nothing
    with pytest.raises(ConstraintRefused, match="from token 1 on"):
        run.next_result()
    run.constraint = Constraint("regex", "(")
    assert run.end == "constraint" and run.refusal is not None and run.refusal.reason == "grammar"
    run.constraint = None
    assert run.end == "" and run.masking(None) is None


def test_what_is_taken_by_hand_need_not_fit_but_nothing_follows_it(lm):
    run = GenerationRun(lm, ids(lm), lm.end_tokens)
    run.settings, run.constraint = SETTINGS, WORDS
    run.take(run.node, lm.tokenizer.encode("我").ids[0])
    assert run.node.prob == 0 and run.end == "constraint"


def test_a_text_that_is_drawn_first_and_masked_after_is_the_one_of_generate_and_of_the_file(lm):
    retried = Constraint("choices", " is happy.\n likes tea.", retries=True)
    settings = SamplingSettings(top_k=5, seed=1)
    steps = list(lmcore.generate(lm, ids(lm), settings, max_new_tokens=8, constraint=retried))
    tree = GenerationTree(lm, ids(lm))
    node = tree.root
    for step in steps:
        node = tree.draw(node, settings, constraint=retried)
        assert node.token_id == step.token_id and node.prob == pytest.approx(step.prob, abs=1e-6)
    assert any(len(step.result.ways) == 2 for step in steps)
    opened = GenerationTree(lm, ids(lm))
    *_, restored = tree_file.read(tree_file.to_json(tree, "The king", node, node), lm).restore(opened)
    assert {each.constraint for each in opened.path(restored.present)} == {retried}
