"""The operator's file of engines: what it may hold, and that a mistake in it is named."""

from __future__ import annotations

import pytest

from lmcore.engines.config import FILE_VARIABLE, EngineConfig, configured, read

GOOD = '[[engine]]\nname = "A"\nbase_url = "http://h:1/v1"\nmodel = "m"\n'


def write(tmp_path, text):
    path = tmp_path / "engines.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_engine_and_its_defaults(tmp_path, monkeypatch):
    assert configured() == ()
    monkeypatch.setenv(FILE_VARIABLE, str(write(tmp_path, GOOD + 'key_variable = "K"\ntimeout = 5\n')))
    assert configured() == (EngineConfig("A", "http://h:1/v1", "m", key_variable="K", timeout=5),)


@pytest.fixture(autouse=True)
def no_file(monkeypatch):
    monkeypatch.delenv(FILE_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[engine]\n", "TOML"),
        ('[[engine]]\nbase_url = "http://h/v1"\nmodel = "m"\n', "name is missing"),
        (GOOD + 'key = "sk-1"\n', "'key'"),
        (GOOD + "vocab_size = true\n", "vocab_size"),
        (GOOD + "timeout = 0\n", "timeout"),
        (GOOD + "vocab_size = -1\n", "vocab_size"),
        (GOOD.replace("http://h:1", "http://user:secret@h:1"), "password"),
        (GOOD.replace("http://h:1", "ftp://h:1"), "base_url"),
        (GOOD.replace("/v1", "/v1?key=secret"), "query"),
        (GOOD.replace('"A"', '"[A](http://x)"'), "name"),
        (GOOD + GOOD, "'A'"),
        ("title = 1\n" + GOOD, "title"),
        (GOOD.replace('model = "m"', 'model = ""'), "model"),
    ],
)
def test_a_mistake_is_named_and_no_secret_is(tmp_path, text, named):
    with pytest.raises(ValueError, match=named) as caught:
        read(write(tmp_path, text))
    assert "engines.toml" in str(caught.value)
    assert "secret" not in str(caught.value) and "sk-1" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="gone.toml"):
        read(tmp_path / "gone.toml")
