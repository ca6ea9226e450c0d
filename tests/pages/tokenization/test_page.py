"""The tokenization page: its figures, its live parts' data, and its numbers against other ways of getting them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers

import lmcore
from pages.figures.tokenization import merges as figures
from pages.live.merge_replay import replay_data
from pages.stages.tokenization import names, special
from tests.pages.harness import ROOT, part, printed, told
from tests.pages.hostile import TEXTS
from tests.pages.tokenization.page import REFERENCE, run

VIEWS = ("tokens", "compare", "merges", "train", "vocabulary", "special", "whose", "names")


def test_pieces_left_falls_from_bytes_to_tokens() -> None:
    figure = figures.pieces_left([6, 4, 3], ["a + <b>", "c"], x_title="merges done", step=1)
    stairs, mark = figure.data
    assert list(stairs.y) == [6, 4, 3] and list(stairs.x) == [0, 1, 2]
    assert stairs.customdata[1] == "a + &lt;b&gt;"
    assert (mark.x[0], mark.y[0]) == (1, 4)
    assert figure.layout.xaxis.title.text == "merges done"
    with pytest.raises(ValueError, match="3 counts and 1 merges"):
        figures.pieces_left([6, 4, 3], ["a"])


def test_renamed_logits_keeps_the_order_of_tokens() -> None:
    figure = figures.renamed_logits([1.0, 2.0], [1.0, 2.0], [5.0, 6.0], ["<a>", "b"], moved_name="moved")
    unmoved, moved = figure.data  # drawn last lies on top
    assert list(moved.x) == list(moved.y) == [1.0, 2.0] and moved.name == "moved"
    assert list(unmoved.y) == [5.0, 6.0]
    assert list(moved.customdata) == ["&lt;a&gt;", "b"]


@pytest.mark.parametrize("text", ["今天天气", "😊", "aaa", ""])
def test_the_browser_gets_every_piece_of_the_replay(text: str) -> None:
    tokenizer = lmcore.builtin.tokenizer()
    steps = tokenizer.replay(text)
    data = replay_data(tokenizer.first_pieces(text), steps)
    for number in range(len(steps) + 1):
        standing = [p for p in data["pieces"] if p["born"] <= number and (p["died"] is None or number < p["died"])]
        expected = len(steps[number - 1].pieces) if number else len(text.encode())
        assert len(standing) == expected
    assert [step["rank"] for step in data["steps"]] == [step.rank for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_both_languages(view: str, lang: str) -> None:
    app = run(view, lang=lang, model="small-world-untied")
    assert app.title[0].value == {"en": "Tokenization", "zh": "分词"}[lang]
    assert len(app.dataframe) >= 1
    if view != "train":  # its text is the reader's own file
        printed(app)


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "好" * 600, "x" * 5000])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_meets_any_prompt(view: str, prompt: str) -> None:
    app = run(view, prompt=prompt)
    if view in ("special", "whose", "train", "vocabulary"):
        assert len(app.code) >= 1  # these have a text of their own
    elif prompt in ("", "x" * 5000):
        assert len(app.info) == 1 and not app.dataframe


def test_tokens_are_those_of_the_tokenizers_library() -> None:
    text = "我喜欢😊和龘 The king\n"
    app = run(prompt=text)
    reference = REFERENCE.encode(text)
    frame: pd.DataFrame = app.dataframe[0].value
    assert frame["id"].tolist() == reference.ids
    joined = "".join(frame["bytes (hex)"]).replace(" ", "")
    assert bytes.fromhex(joined).decode() == text
    assert (frame["bytes"].sum(), frame["position"].tolist()) == (len(text.encode()), list(range(len(reference.ids))))
    assert [text[a:b] for a, b in zip(frame["start"], frame["end"], strict=True)][2:6] == ["😊"] * 4
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Characters"] == str(len(text)) and shown["Tokens"] == str(len(reference.ids))
    assert float(shown["Characters per token"]) == pytest.approx(len(text) / len(reference.ids), abs=5e-4)
    assert float(shown["Bytes per token"]) == pytest.approx(len(text.encode()) / len(reference.ids), abs=5e-4)
    n = len(text.encode())
    assert f"{n} of {n} bytes are equal" in told(app)
    lines = printed(app).splitlines()
    assert [int(line.split()[0]) for line in lines[:6]] == reference.ids[:6]


def test_an_emoji_is_one_group_of_four_tokens() -> None:
    groups = part(run(prompt="我😊"), "token_groups")["groups"]
    assert [(group["text"], len(group["chips"])) for group in groups] == [("", 1), ("😊", 4)]
    assert [chip["bytes"] for chip in groups[1]["chips"]] == ["f0", "9f", "98", "8a"]


@pytest.mark.slow
def test_hostile_texts_reach_the_parts_as_plain_visible_text() -> None:
    for text in TEXTS:
        if text:
            groups = part(run(prompt=text), "token_groups")["groups"]
            assert not any(character in json.dumps(groups, ensure_ascii=False) for character in "\0\u202e\x1b\u200b")


def test_a_long_text_is_drawn_in_part_and_tabled_whole() -> None:
    app = run(prompt="龘" * 500)
    assert "The first 300 of 1,500 tokens are drawn" in told(app)
    assert len(app.dataframe[0].value) == 1500


def test_merges_are_the_tokenizers_own_in_rank_order() -> None:
    app = run("merges", prompt="今天天气", merge_step="3")
    frame = app.dataframe[0].value
    definition = json.loads((ROOT / "lmcore/builtin/tokenizer.json").read_text(encoding="utf-8"))["model"]["merges"]
    assert frame["rank"].tolist() == sorted(frame["rank"])
    assert frame["pieces left"].iloc[-1] == len(REFERENCE.encode("今天天气").ids)
    assert len(definition) == int(app.latex[0].value.split("merges")[0].rsplit("underbrace{", 1)[1].split("}")[0])
    assert part(app, "merge_replay")["step"] == 3
    ranks = {tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")): i for i, pair in enumerate(definition)}
    assert len(ranks) == len(definition)
    first = frame["other candidates (rank)"].iloc[0]
    waiting = [int(rank) for rank in re.findall(r"\((\d+)\)", first)]
    assert (
        waiting == sorted(waiting)
        and waiting[0] >= frame["rank"].iloc[0]
        and frame["other candidates (rank)"].iloc[-1] == ""
    )
    assert len(printed(app).splitlines()) == len(frame)


def test_a_merge_step_beyond_the_end_is_moved_to_it() -> None:
    app = run("merges", prompt="a", merge_step="99")
    assert part(app, "merge_replay")["step"] == 0
    assert "the pieces stay as they are" in told(app)


def test_special_strings_both_ways() -> None:
    app = run("special", special_text="x<|endoftext|>y")
    frame = app.dataframe[0].value
    as_text, as_control = ([int(i) for i in ids.split(", ")] for ids in frame["ids"])
    assert as_text == REFERENCE.encode("x<|endoftext|>y").ids and frame["control tokens"].tolist() == [0, 1]
    assert len(as_control) == 3 and as_control[1] == REFERENCE.token_to_id("<|endoftext|>")
    assert len(part(app, "token_groups")["groups"]) == len(as_text)
    switched = run("special", special_text="x<|endoftext|>y", special_strings="control")
    assert len(part(switched, "token_groups")["groups"]) == 3


def test_of_thousands_of_control_tokens_the_first_few_are_named() -> None:
    named = special._what({f"<unused{number}>": number for number in range(6_000)})
    assert "6,000 control tokens" in named and "`<unused7>` (id 7)" in named and "unused8" not in named
    assert "5,992 more" in named


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_scored_vocabulary_shows_the_winner_and_its_runners_up(
    lang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tokenizers.Tokenizer(
        models.Unigram([("<unk>", 0.0), ("▁", -2.0), ("a", -3.0), ("b", -3.5), ("ab", -5.0), ("▁a", -4.0)], unk_id=0)
    )
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.save(str(tmp_path / "scored.json"))
    (tmp_path / "broken.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    app = run("merges", prompt="ab", lang=lang, **{"merges.vocabulary": "scored.json", "merges.ways": "2"})
    assert len(app.selectbox(key="merges.vocabulary").options) == 3  # the model's own, the built-in pieces, the file
    frame = app.dataframe[0].value
    # By hand: ▁|ab -7, ▁a|b -7.5, ▁|a|b -8.5.
    assert frame.iloc[:, 1].tolist() == ["▁ | ab", "▁a | b"] and frame["ln P"].tolist() == [-7.0, -7.5]
    whole = np.exp([-7.0, -7.5, -8.5]).sum()
    np.testing.assert_allclose(frame.iloc[:, 5], 100 * np.exp([-7.0, -7.5]) / whole)  # in percent, as it is shown
    assert frame["ids"].iloc[0] == ", ".join(map(str, library.encode("ab").ids))
    rows = part(app, "vocabulary_rows")
    assert [chip[4] for cell in rows["stretches"][0]["rows"][0] for chip in cell[2]] == ["−2.000", "−5.000"]
    assert printed(app).splitlines()[:2] == ["3", "-7.0 ['▁', 'ab']"]


@pytest.mark.parametrize("prompt", ["a", "今天天气😊", *TEXTS[:4]])
def test_the_built_in_pieces_with_scores_stand_any_prompt(prompt: str) -> None:
    app = run("merges", prompt=prompt, **{"merges.vocabulary": "small-world-scored"})
    assert len(app.dataframe[0].value) >= 1


def test_a_long_token_is_written_in_part_and_told_whole() -> None:
    from pages.live.token_groups import _short

    assert _short("a" * 32, 32) == "a" * 32 and _short("a" * 33, 32) == "a" * 32 + " …"


def test_the_vocabulary_is_searched_by_text_bytes_and_id() -> None:
    tokens = [lmcore.builtin.tokenizer().token_bytes(i) for i in range(REFERENCE.get_vocab_size())]
    found = run("vocabulary", **{"vocabulary.query": "气"}).dataframe[0].value
    assert found["id"].tolist() == [i for i, token in enumerate(tokens) if "气".encode() in token]
    found = run("vocabulary", **{"vocabulary.query": "e6 b0", "vocabulary.by": "bytes", "vocabulary.how": "begins"})
    assert found.dataframe[0].value["id"].tolist() == [i for i, token in enumerate(tokens) if token[:2] == b"\xe6\xb0"]
    assert found.dataframe[0].value["script"].tolist()[0] == "part of a character"
    assert run("vocabulary", **{"vocabulary.query": "800", "vocabulary.by": "id"}).dataframe[0].value[
        "id"
    ].tolist() == [800]
    for by, words in (("id", "This is not an id"), ("bytes", "These are not bytes")):
        app = run("vocabulary", **{"vocabulary.query": "x", "vocabulary.by": by})
        assert words in told(app) and not app.dataframe


def test_lists_of_the_vocabulary() -> None:
    special = run("vocabulary", **{"vocabulary.list": "special"}).dataframe[0].value
    assert special["token"].tolist() == ["<|endoftext|>"]
    scripts = run("vocabulary", **{"vocabulary.list": "scripts", "vocabulary.script": "Han"}).dataframe[0].value
    assert set(scripts["script"]) == {"Han"} and len(scripts) > 100
    longest = run("vocabulary", **{"vocabulary.list": "longest"}).dataframe[0].value["Characters"].tolist()
    assert len(longest) == 40 and longest == sorted(longest, reverse=True)


def test_a_token_is_followed_to_the_embedding_page() -> None:
    app = run(prompt="今天天气", position="1")
    (address,) = [link.proto.query_string for link in app.get("page_link") if "See the row of" in link.proto.label]
    wanted = dict(pair.split("=") for pair in address.split("&"))
    assert wanted == {"table.view": "lookup", "position": "1", "apply": "1"}
    app.query_params.clear()
    for name, value in wanted.items():
        app.query_params[name] = value
    app.switch_page("pages/stages/embedding/page.py").run()
    token_id = REFERENCE.encode("今天天气").ids[1]
    assert f"has id **{token_id}**" in told(app)


def test_a_link_with_a_vocabulary_that_is_not_here_says_so() -> None:
    app = run("compare", vocabularies="bytes,elsewhere")
    assert app.dataframe[0].value["vocabulary"].tolist() == ["bytes"]
    assert "Some vocabularies in this link are not available here and were left out." in [
        text.value for text in app.text
    ]


def test_the_toy_table_beside_the_models_ids() -> None:
    app = run("whose", toy_text="我喜欢猫", toy_length="5")
    assert [json.loads(code.value) for code in app.code[:2]] == [[2, 3, 4, 0, 0], REFERENCE.encode("我喜欢猫").ids]
    assert "toy word-level vocabulary" in told(app)
    assert printed(app).splitlines()[0] == "toy: [2, 3, 4, 0, 0]"
    assert "There are 1 UNKs here;" in told(run("whose", toy_text="我喜欢鱼"))


def test_of_a_large_vocabulary_some_tokens_are_drawn_and_the_most_probable_among_them() -> None:
    logits = torch.randn(262_144, generator=torch.Generator().manual_seed(1))
    ids = names.to_draw(logits)
    assert len(ids) <= names.MAX_DRAWN and {0, 262_143} < set(ids.tolist())
    assert ids.tolist() == sorted(set(ids.tolist()))
    assert set(logits.topk(names.MOST_PROBABLE).indices.tolist()) < set(ids.tolist())
    assert names.to_draw(logits[:1000]).tolist() == list(range(1000))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["small-world", "small-world-untied"])
def test_renamed_ids_give_the_same_logits(model: str) -> None:
    app = run("names", prompt="今天天气", model=model, id_seed="5")
    lm = lmcore.load(model)
    ids = REFERENCE.encode("今天天气").ids
    expected = lm(ids)[-1].numpy()
    new_id = torch.randperm(lm.config.vocab_size, generator=torch.Generator().manual_seed(5))
    frame = app.dataframe[0].value
    rows = frame["old id"].to_numpy()
    assert rows[: len(ids)].tolist() == ids
    assert frame["new id"].tolist() == new_id[rows.tolist()].tolist()
    np.testing.assert_allclose(frame["logit before"], expected[rows], atol=1e-5)
    np.testing.assert_allclose(frame["logit after, rows moved too"], expected[rows], atol=1e-4)
    alone = lm(new_id[ids])[-1][new_id].numpy()
    np.testing.assert_allclose(frame["logit after, only ids changed"], alone[rows], atol=1e-4)
    moved, unmoved = (float(line) for line in printed(app).splitlines())
    assert moved < 1e-4 < unmoved
    assert f"**{unmoved:.3g}** if only the ids change" in told(app)
    table = app.table[0].value
    assert f"= {lm.model.token_embedding.weight.numel():,}" in table["Embedding"].iloc[3]
