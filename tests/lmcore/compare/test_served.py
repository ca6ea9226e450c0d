"""A side that an engine runs: the small server has the built-in model's own weights."""

import pytest

import lmcore
from lmcore import SamplingSettings
from lmcore.compare import Served, Side, compare
from lmcore.engines.config import EngineConfig
from lmcore.engines.engine import Engine
from tests.engines.small_server import KEY, Behaviour, serving

TEXT = "The weather today is"


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setenv("TINY_KEY", KEY)
    behaviour = Behaviour()
    behaviour.key = KEY
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny", key_variable="TINY_KEY"))
        yield engine
        engine.close()


@pytest.mark.slow
def test_the_same_weights_elsewhere_are_not_blamed_and_others_are(engine) -> None:
    greedy = SamplingSettings(temperature=0, seed=0)

    def against(model: str, **values: float):
        here = Side(model=lmcore.load(model), text=TEXT, settings=greedy, stop_ids=(), max_new_tokens=3)
        settings = SamplingSettings(**{"temperature": 0, "seed": 0, **values})
        return compare(here, Served(engine=engine, text=TEXT, settings=settings, max_new_tokens=3))

    same = against("small-world")
    assert same.first_difference is None and len(same.places) == len(same.a.ids) and same.parting is None
    other = against("small-world:bfloat16")
    assert other.first_difference == "logits" and "log-probabilities" in other.sentence
    assert against("small-world", temperature=0.5).first_difference == "settings"
    # What the interface has no field for is not sent, so that it is not at work.
    assert against("small-world", min_p=0.3).first_difference is None
    with pytest.raises(ValueError, match="nothing to read"):
        compare("small-world", Served(engine=engine))
