"""Where each setting comes from: the reader, the model's file, the engine's default."""

from lmcore.model_card import ModelCard
from lmcore.sampling import preset
from pages.live.sampling_lab import engines
from pages.stages.sampling.origins import origins
from tests.pages.harness import opener

CARD = ModelCard(sampling={"temperature": 0.6, "top_k": 20}, sampling_file="generation_config.json")


def test_each_setting_has_one_origin() -> None:
    settings = preset("llama.cpp", model=CARD.sampling, top_k=7, xtc_probability=0.5)
    assert origins(settings, CARD) == {
        **dict.fromkeys(("top_k", "xtc_probability"), "you"),
        "temperature": "model",
        **dict.fromkeys(("penalty_last_n", "dry_penalty_last_n", "top_p", "min_p"), "engine"),
    }
    assert origins(preset("ollama", model=CARD.sampling), CARD)["temperature"] == "engine"  # it asks no model's file


def test_the_labs_defaults_are_those_with_the_model() -> None:
    table = engines.table(CARD.sampling)
    assert table["vllm"]["defaults"] == {"temperature": 0.6, "top_k": 20}
    assert table["llama.cpp"]["defaults"]["top_k"] == 20 and table["ollama"]["defaults"]["top_k"] == 40


def test_the_page_says_it() -> None:
    app = opener("sampling")(prompt="The", engine="llama.cpp", top_k="40", temperature="0.8", top_p="0.5")
    (told,) = (caption.value for caption in app.caption if "From you" in caption.value)
    assert "top_p 0.5" in told.split("llama.cpp")[0] and "top_k 40" in told.split("llama.cpp")[1]
