"""The first difference of thirty pairs of runs is named rightly, and of as many that are the same none is blamed."""

import pytest

import lmcore
from lmcore.compare import NOTES, STAGES, Side, compare
from tests.lmcore.compare import runs


@pytest.mark.slow
def test_the_stage_of_one_difference_is_named() -> None:
    pairs = runs.different()
    assert len(pairs) >= 30 and {stage for stage, _a, _b in pairs.values()} == set(STAGES)
    found = {name: compare(a, b) for name, (_stage, a, b) in pairs.items()}
    named = {name: each.first_difference for name, each in found.items()}
    assert named == {name: stage for name, (stage, _a, _b) in pairs.items()}
    for each in found.values():
        assert each.sentence.template in NOTES and "{" not in each.sentence


@pytest.mark.slow
def test_runs_that_are_the_same_are_not_blamed() -> None:
    pairs = runs.same()
    assert len(pairs) >= 30
    blamed = {name: found.sentence for name, (a, b) in pairs.items() if (found := compare(a, b)).first}
    assert blamed == {}


@pytest.mark.slow
def test_a_difference_is_placed() -> None:
    found = {name: compare(a, b) for name, (_stage, a, b) in runs.different().items()}
    assert found["whitespace"].first.place == len("The king likes the queen. ")
    assert found["trailing space"].sentence.values["a"] == "–"
    assert found["BOS"].sentence == "The ids differ from token 0 on: B begins with '<|endoftext|>' (0), which A lacks."
    assert found["penalty window"].sentence.values["what"] == "penalty_last_n None | 64"
    assert found["quantised tensor"].parts_in.name == "blocks.1.resid_post"
    assert found["one weight"].parts_in.name == "blocks.0.resid_mid"
    assert found["quantised head"].parts_in.name == "token_embedding"
    assert found["window"].first.place == 4  # the first position from which the window hides one
    assert found["logit scale"].parts_in is None  # the streams are the same to the end
    texts = found["seed, texts"]
    a, b = ([each.token for each in side] for side in texts.drawn)
    assert texts.parting == next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)


def test_a_later_stage_does_not_run_for_an_earlier_difference() -> None:
    def never(lm: lmcore.LanguageModel, ids: tuple[int, ...]) -> None:
        raise AssertionError("the model ran")

    found = compare(runs.side(), runs.side(text="Another text"), forward=never)
    assert found.first_difference == "text"


def test_bad_input_is_said() -> None:
    import pytest

    with pytest.raises(ValueError, match="nothing to read"):
        compare("small-world", "small-world")
    with pytest.raises(ValueError, match="reads no token"):
        assert compare("small-world", "small-world", "").places
    with pytest.raises(ValueError, match="no model is called"):
        compare("small-world", "no-such-model", "The king")


def test_the_function_and_the_package_have_one_name() -> None:
    import lmcore.compare.measures

    assert callable(lmcore.compare) and lmcore.compare is compare
    assert isinstance(lmcore.Comparison, type) and Side.__module__ == "lmcore.compare.side"
