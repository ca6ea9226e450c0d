"""A stage of a reader's own: declared in a file of theirs, it is a stage like any other."""

import pickle

import pytest

from lmcore.sampling import OFF, STAGES, Field, Range, SamplingSettings, Stage, preset, register, reshape, unregister
from lmcore.sampling.registry import all_stages


def every_other(tokens, context):
    return tokens.keep_where(tokens.token_ids % context.settings.every == 0)


EVERY = Stage(
    name="every",
    title="Every n-th",
    help="Keeps every n-th id.",
    kind="filter",
    formula="id mod n = 0",
    source="a test",
    fields=(Field(name="every", off=1, range=Range(1), whole=True, on=2),),
    run=every_other,
)


@pytest.fixture
def registered():
    yield register(EVERY)
    unregister("every")


def test_it_is_a_setting_with_its_checks_and_runs_last(registered):
    result = reshape([0.0] * 6, SamplingSettings(every=3, temperature=0.5))
    assert result.kept_ids.tolist() == [0, 3] and result.settings.active == ("temperature", "every")
    with pytest.raises(ValueError, match="every is 0; it must be an integer, 1 or more"):
        SamplingSettings(every=0)
    assert SamplingSettings(every=1) == SamplingSettings()
    assert pickle.loads(pickle.dumps(SamplingSettings(every=2))).every == 2
    assert preset("vllm", every=2).ignored == ("every",)


def test_lmcores_own_lists_stay_and_it_is_gone_when_taken_away(registered):
    assert "every" not in STAGES and "every" not in OFF
    assert all_stages()[-1].name == "every"
    unregister("every")
    with pytest.raises(TypeError, match="'every' is not a sampling setting"):
        SamplingSettings(every=2)
    register(EVERY)


def test_names_that_are_taken_are_refused():
    for name in ("top_k", "seed", "no name"):
        fields = (Field(name=name),)
        with pytest.raises(ValueError, match=name):
            register(
                Stage(name=name, title="", help="", kind="edit", formula="", source="", fields=fields, run=every_other)
            )
    with pytest.raises(ValueError, match="not a stage that was registered"):
        unregister("top_k")
