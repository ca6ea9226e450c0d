"""What a page shows at first, without any choice made, has something to show."""

from __future__ import annotations

import pytest

import lmcore
from pages.common.bar import DEFAULT_PROMPTS
from tests.lmcore.checkpoints.tiny import write_folder
from tests.pages.harness import decoded, figures, open_page, told


@pytest.mark.slow
@pytest.mark.parametrize("lang", DEFAULT_PROMPTS)
def test_the_first_pictures_differ_where_one_looks(lang: str) -> None:
    similar = decoded(figures(open_page("embedding", lang=lang))[0].data[0].x)
    assert max(similar) > 2 * min(similar)
    apart = decoded(figures(open_page("position", lang=lang))[-1].data[0].x)
    assert max(apart) > 10 * min(apart)
    pattern = decoded(figures(open_page("blocks", lang=lang))[0].data[0].z)
    assert len(pattern) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("lang", DEFAULT_PROMPTS)
def test_the_step_that_is_trained_first_is_on_a_sentence_for_everybody(lang: str) -> None:
    said = told(open_page("training", **{"training.view": "step", "lang": lang}))
    assert "→" in said and "华法林" not in said and "warfarin" not in said.lower()


def test_the_trained_length_of_a_scaling_is_the_models(tmp_path, monkeypatch) -> None:
    write_folder("llama", tmp_path / "long")
    monkeypatch.setenv(lmcore.loading.FOLDER_VARIABLE, str(tmp_path))
    app = open_page("position", **{"position.view": "scaling", "model": "long", "prompt": "the cat"})
    assert app.session_state["position.trained"] == lmcore.load(tmp_path / "long").config.context_length
