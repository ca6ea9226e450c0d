"""Stop strings are found wherever the tokens' borders are."""

import lmcore
from lmcore.generation.run import GenerationRun
from lmcore.generation.stopping import StopMatch, stop_match


def test_a_stop_string_may_span_tokens_and_characters_tokens() -> None:
    assert stop_match([b"a", b"b", b"c"], ["bc"]) == StopMatch("bc", 1)
    assert stop_match([b"ab", b"c", b"d"], ["bc"]) is None  # it was complete one token before
    assert stop_match(["好".encode()[:1], "好".encode()[1:]], ["好"]) == StopMatch("好", 0)
    assert stop_match([b"x\nEnd"], ["\nEnd", "End"]) == StopMatch("\nEnd", 1)
    assert stop_match([b"abc"], ["ab", "abc"]) == StopMatch("abc", 0)
    assert stop_match([b"abab"], ["ab"]) == StopMatch("ab", 0)
    assert stop_match([], ["a"]) is None and stop_match([b"a"], ["", "b"]) is None


def test_a_run_ends_at_a_stop_string() -> None:
    lm = lmcore.load("small-world")
    run = GenerationRun(lm, lm.tokenizer.encode("The weather today").ids)
    run.settings = lmcore.SamplingSettings(temperature=0, seed=0)
    for _ in range(12):
        run.step()
    tokens = [node.token for node in run.tree.path(run.node)]
    stop = (tokens[4][-1:] + tokens[5][:2]).decode()  # the end of one token and the beginning of the next
    run.go_to(run.tree.root)
    run.stop_strings = (stop,)
    for _ in range(12):
        run.step()
    assert run.node.depth == 6 and run.end == "stop string"
    assert run.stop_match == StopMatch(stop, len(b"".join(tokens[:5])) - 1)
    run.stop_strings = ()
    assert run.end == "" and run.tip.depth == 12  # what was drawn is kept, and it can go on
