"""Several vocabularies on one text, those of files and the one trained on the page among them."""

from itertools import islice
from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from lmcore.loading.vocabulary_files import sample_text
from lmcore.tokenizer.bpe_training import learn_merges, split_words, tokenizer_of
from tests.pages.harness import go_to, part, printed, told
from tests.pages.tokenization.page import REFERENCE, run


def test_vocabularies_side_by_side() -> None:
    text = "unbelievably 今天天气 😊"
    app = run("compare", prompt=text, vocabularies="small-world,characters,bytes")
    frame = app.dataframe[0].value
    assert frame["tokens"].tolist() == [len(REFERENCE.encode(text).ids), len(text), len(text.encode())]
    assert frame["V"].tolist() == [REFERENCE.get_vocab_size(), 1_112_064, 256]
    assert frame["characters per token"].tolist() == [len(text) / n for n in frame["tokens"]]
    assert frame["bytes per token"].tolist() == [len(text.encode()) / n for n in frame["tokens"]]
    assert frame["characters split"].tolist() == [1, 0, 5] and frame["words split"].tolist() == [1, 1, 1]
    assert app.dataframe[1].value["restored"].tolist() == ["✓"] * 3
    data = part(app, "vocabulary_rows")
    for row, ids in enumerate([REFERENCE.encode(text).ids, list(map(ord, text)), list(text.encode())]):
        drawn = [chip[2] for stretch in data["stretches"] for cell in stretch["rows"][row] for chip in cell[2]]
        assert drawn == ids
    assert [line.split()[:2] for line in printed(app).splitlines()] == [
        [name, str(n)] for name, n in zip(["small-world", "characters", "bytes"], frame["tokens"], strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "n"), [("letters", 100_000), ("marks", 1_000_000)])
def test_of_a_long_text_only_a_window_is_drawn_and_all_is_counted(sample: str, n: int) -> None:
    app = run("compare", **{"tokenization.text": sample, "tokenization.from": "480"}, vocabularies="bytes,small-world")
    frame = app.dataframe[0].value
    assert frame["tokens"].tolist() == [n, n] and "restored" in app.dataframe[1].value
    chips = [cell for stretch in part(app, "vocabulary_rows")["stretches"] for cell in stretch["rows"][0]]
    assert len(chips) == 240
    assert f"{n:,} characters" in told(app)


def test_a_pasted_text_is_kept_while_the_reader_looks_elsewhere() -> None:
    text = "今天 the weather\n" * 5_000
    app = run("compare", **{"tokenization.text": "pasted"}, vocabularies="characters")
    app.session_state["tokenization.pasted"] = text
    assert app.run().dataframe[0].value["tokens"].tolist() == [len(text)]
    given = part(app, "long_text")
    assert given["beginning"] == text[:20_000] and given["length"] == len(text)
    go_to(go_to(app, "embedding"), "tokenization")
    assert app.dataframe[0].value["tokens"].tolist() == [len(text)]


def test_what_a_file_loses_is_marked_with_the_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0, "cafe": 1, "##s": 2}, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.save(str(tmp_path / "small.json"))
    (tmp_path / "broken.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    app = run("compare", prompt="Cafés", vocabularies="small.json,bytes")
    frame = app.dataframe[1].value
    assert frame["restored"].tolist() == ["✗ not the same text", "✓"]
    assert frame["normalised to"].tolist() == ["cafes", "unchanged"]
    assert frame["differences"].tolist() == ["C → c; é → e␣##", ""]


def test_special_tokens_typed_by_name_are_text_or_control_tokens_in_every_vocabulary() -> None:
    text = "x<|endoftext|>y"
    counts = {
        switch: run("compare", prompt=text, vocabularies="small-world,bytes", special_strings=switch)
        for switch in ("text", "control")
    }
    as_text, control = (app.dataframe[0].value["tokens"].tolist() for app in counts.values())
    assert as_text == [len(REFERENCE.encode(text).ids), len(text)] and control == [3, len(text)]
    assert counts["control"].dataframe[1].value["restored"].tolist() == ["✓", "✓"]


def test_the_vocabulary_trained_here_is_one_of_those_compared() -> None:
    app = run("compare", prompt="the weather", vocabularies="trained here,bytes", bpe_merges="50")
    learned = list(islice(learn_merges(split_words(sample_text(15_000))), 50))
    expected = tokenizer_of(merge.pair for merge in learned).encode("the weather").ids
    frame = app.dataframe[0].value
    assert frame["V"].tolist() == [306, 256] and frame["tokens"].iloc[0] == len(expected)
    app.session_state["tokenization.training"] = "banana bandana " * 50
    app.run()
    assert not app.exception and app.dataframe[0].value["tokens"].iloc[0] == len("the weather")


def test_a_vocabulary_is_trained_and_compared() -> None:
    text = "the cat sat on the mat. " * 40
    app = run("train", prompt="the mat", vocabularies="bytes", bpe_merges="5")
    app.session_state["tokenization.training"] = text
    app.run()
    learned = list(learn_merges(split_words(text)))
    frame = app.dataframe[-1].value
    assert frame["times adjacent"].tolist() == [merge.count for merge in learned]
    assert frame["tokens of the text"].tolist() == [merge.n_tokens for merge in learned]
    beside = app.dataframe[0].value
    expected = tokenizer_of([merge.pair for merge in learned[:5]]).encode("the mat").ids
    assert beside["tokens"].tolist() == [len(expected), 7] and beside["V"].tolist() == [261, 256]
    replay = part(app, "merge_replay")
    assert replay["step"] == 5 and replay["steps"][4]["tokens"] == learned[4].n_tokens
    app.session_state["tokenization.training"] = "abc"
    assert "nothing to learn" in told(app.run())
