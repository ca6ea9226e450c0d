"""The blocks page shows what numpy computes, and its code runs as it stands."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmcore
from lmcore import Encoding
from lmcore.config import ModelConfig
from pages.figures.blocks.interventions import before_and_after
from pages.stages.blocks import tensor_files
from pages.stages.blocks.attention import pattern_rows
from pages.stages.blocks.diagram import diagram, mlp_name, shape_line
from pages.stages.blocks.tensor_files import to_csv, to_npz
from pages.stages.embedding.sentences import shared_tokens
from tests.pages.harness import figures, opener, snippet, told

run = opener("blocks")

VIEWS = ("attention", "query", "residual", "mlp", "interventions", "experts", "context", "tensors")
PROMPT = "The weather today is"
GROUPED = ModelConfig(
    vocab_size=50,
    d_model=16,
    n_layers=3,
    n_heads=4,
    n_kv_heads=2,
    d_head=6,
    d_mlp=40,
    context_length=9,
    gated_mlp=False,
    activation="gelu",
    position_encoding="learned",
    tie_embeddings=False,
)


def traced(model: str = "small-world", prompt: str = PROMPT) -> tuple[lmcore.LanguageModel, lmcore.Trace]:
    lm, trace = lmcore.load(model), lmcore.Trace()
    lm(lm.tokenizer.encode(prompt).ids, trace=trace)
    return lm, trace


# Diagram


def test_the_diagram_has_this_models_sizes_and_offers_what_exists() -> None:
    shown_map = diagram(GROUPED, 5, 2, 1, "attention", "Block 2")
    attn = shown_map.block.attention[1]
    assert attn.shape == "q [4, 5, 6]  k v [2, 5, 6]"
    assert shown_map.block.attention[2].note == "W_out [16, 24]"
    assert shown_map.block.mlp[1].shape == "[5, 40]" and shown_map.block.mlp[1].note == "GELU"
    assert [node.name for node in shown_map.before] == ["ids", "token_embedding", "+ positions"]
    assert shown_map.after[1].note == "W [50, 16]"
    assert [node.selected for node in shown_map.blocks] == [False, False, True]
    assert [node.selected for node in shown_map.block.heads] == [False, True, False, False]
    numbers = {choice for choice in shown_map.choices() if choice[0] != "view"}
    assert numbers == {("layer", i) for i in range(3)} | {("head", i) for i in range(4)}
    assert {value for key, value in shown_map.choices() if key == "view"} == {"attention", "residual", "mlp"}


def test_the_shape_line_is_the_traces_shapes() -> None:
    lm, trace = traced()
    names = ["attn_norm.out", "attn.q", "attn.pattern", "attn.z"]
    line = shape_line(lm.config, 4, "attention").splitlines()[2]
    expected = [str(list(trace[f"blocks.0.{name}"].shape)) for name in names]
    assert [part.strip() for part in line.split("→")][:4] == expected
    assert "[5, 24]" in shape_line(GROUPED, 5, "attention")  # heads joined: n_heads * d_head, not d_model
    assert shape_line(GROUPED, 5, "mlp").splitlines()[2].split() == ["[5,", "16]", "→", "[5,", "40]", "→", "[5,", "16]"]


def test_the_mlp_has_its_name() -> None:
    assert mlp_name(lmcore.load("small-world").config) == "SwiGLU"
    assert mlp_name(GROUPED) == "GELU"


# Downloads


def test_downloads_hold_the_tensors() -> None:
    _lm, trace = traced()
    with np.load(io.BytesIO(to_npz(trace, list(trace)))) as archive:
        assert list(archive) == list(trace)
        for name in ("token_embedding", "blocks.3.attn.masked_scores", "logits"):
            np.testing.assert_array_equal(archive[name], trace[name].numpy())
    for name in ("blocks.1.attn.z", "blocks.1.mlp.post", "final_norm.scale"):
        frame = pd.read_csv(io.BytesIO(to_csv(trace[name].numpy(), trace.axes(name))))
        axes, tensor = trace.axes(name), trace[name].numpy()
        assert list(frame.columns[: tensor.ndim - 1]) == list(axes[:-1])
        np.testing.assert_allclose(
            frame.iloc[:, tensor.ndim - 1 :].to_numpy(), tensor.reshape(-1, tensor.shape[-1]), rtol=1e-6
        )


def test_a_part_of_a_tensor_keeps_the_indices_of_the_whole() -> None:
    _lm, trace = traced()
    z, part = trace["blocks.1.attn.z"], (slice(2, 3), slice(0, 3), slice(4, 9))
    frame = pd.read_csv(io.BytesIO(to_csv(z[part].numpy(), trace.axes("blocks.1.attn.z"), (2, 0, 4))))
    row = frame[(frame["head"] == 2) & (frame["query"] == 1)]
    assert list(frame.columns) == ["head", "query", *(f"d_head {index}" for index in range(4, 9))]
    assert row["d_head 5"].item() == pytest.approx(z[2, 1, 5].item(), rel=1e-5)
    with np.load(io.BytesIO(to_npz(trace, ["blocks.1.attn.z"], part))) as archive:
        np.testing.assert_array_equal(archive["blocks.1.attn.z"], z[part].numpy())


def test_large_tensors_are_offered_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "MAX_CSV_NUMBERS", 100)
    monkeypatch.setattr(tensor_files, "MAX_NPZ_BYTES", 400)
    app = run(**{"blocks.view": "tensors", "tensor": "attn.z", "layer": 1})
    assert [button.proto.id.rsplit("-", 1)[-1] for button in app.get("download_button")][:3] == [
        "tensors.blocks_1_attn_z_part.csv",
        "tensors.blocks_1_attn_z_part.npz",
        "tensors.block_1.npz",
    ]


# Page


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", lmcore.builtin.names())
def test_every_view_runs_with_every_model(view: str, model: str) -> None:
    app = run(lang="zh", prompt="苹果发布了😊", model=model, **{"blocks.view": view, "layer": "2", "head": "3"})
    assert not app.exception and not app.error
    assert (app.dataframe or view == "attention") and len(app.get("plotly_chart")) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("prompt", ["好", "\ud83d \0<b>$x$:red[y]", "a" * 300])
def test_every_view_meets_any_prompt(view: str, prompt: str) -> None:
    app = run(prompt=prompt.encode("utf-8", "replace").decode(), **{"blocks.view": view})
    assert not app.exception and not app.error


@pytest.mark.parametrize("model", ["small-world", "small-world-alibi"])
def test_the_attention_table_is_what_numpy_computes(model: str) -> None:
    state = {"blocks.view": "query", "layer": "1", "head": "2", "position": "2"}
    app = run(prompt=PROMPT, model=model, **state)
    table = app.dataframe[0].value
    _lm, trace = traced(model)
    rotated = "_rotated" if model == "small-world" else ""
    q = trace[f"blocks.1.attn.q{rotated}"][2, 2].double().numpy()
    k = trace[f"blocks.1.attn.k{rotated}"][2].double().numpy()
    scores = k @ q / np.sqrt(32)
    if model.endswith("alibi"):
        bias = -(2.0**-6) * (2 - np.arange(4))  # 4 heads: slopes 2^-2, 2^-4, 2^-6, 2^-8
        np.testing.assert_allclose(table["bias"][:3], bias[:3])
        scores = scores + bias
    weights = np.exp(scores[:3]) / np.exp(scores[:3]).sum()
    np.testing.assert_allclose(table["q·k"], k @ q, rtol=1e-6)
    np.testing.assert_allclose(table["weight"][:3] / 100, weights, rtol=1e-6)
    assert np.isnan(table["weight"][3]) and list(table["Masked"]) == [False, False, False, True]


def test_the_pattern_is_saved_pair_by_pair_without_the_future() -> None:
    lm, trace = traced()
    pattern = trace["blocks.1.attn.pattern"][2].numpy()
    rows = pattern_rows(pattern, lm.tokenizer.encode(PROMPT).tokens)
    assert len(rows) == 4 * 5 // 2 and list(rows["key token"][:3]) == ["The", "The", "␣weather"]
    for row in rows.itertuples():
        assert row.key <= row.query and row.weight == pattern[row.query, row.key]


def test_the_residual_and_mlp_tables_are_what_numpy_computes() -> None:
    _lm, trace = traced()
    table = run(prompt=PROMPT, position="1", **{"blocks.view": "residual"}).dataframe[0].value
    lengths = [np.linalg.norm(trace[name][1].double().numpy()) for name in table["State"]]
    np.testing.assert_allclose(table["‖x‖"], lengths, rtol=1e-9)
    np.testing.assert_allclose(
        table["‖added‖"][1:].astype(float),
        [np.linalg.norm(trace[name][1].double().numpy()) for name in table["Added by"][1:]],
        rtol=1e-9,
    )
    np.testing.assert_allclose(table["scale"], np.sqrt(np.square(lengths) / 128 + 1e-5), rtol=1e-5)

    table = run(prompt=PROMPT, layer="3", position="1", **{"blocks.view": "mlp"}).dataframe[0].value
    gate, pre = (trace[f"blocks.3.mlp.{name}"][1].double().numpy() for name in ("gate", "pre"))
    post = gate / (1 + np.exp(-gate)) * pre
    assert list(table["Unit"]) == list(np.argsort(-np.abs(post))[: len(table)])
    np.testing.assert_allclose(table["post"], post[table["Unit"]], rtol=1e-4)


def test_the_list_of_tensors_names_them_all() -> None:
    app = run(prompt=PROMPT, **{"blocks.view": "tensors", "tensor": "logits"})
    _lm, trace = traced()
    table = app.dataframe[0].value
    assert list(table["Tensor"]) == list(trace)
    assert table["max"][len(table) - 1] == pytest.approx(trace["logits"].max().item())


def test_the_tensor_looked_at_is_the_chosen_blocks() -> None:
    for layer in (1, 2):
        state = {"blocks.view": "tensors", "tensor": "mlp.out", "layer": str(layer)}
        app = run(prompt=PROMPT, **state)
        assert not app.exception
        assert f"trace['blocks.{layer}.mlp.out']" in app.code[-1].value


@pytest.mark.parametrize("view", VIEWS)
def test_the_snippet_runs_as_it_stands(view: str) -> None:
    app = run(prompt="今天'天气\"\\", layer="1", **{"blocks.view": view})
    names, printed = snippet(app)
    assert printed
    if view != "context":  # which has two texts of its own
        assert names["ids"] == lmcore.builtin.tokenizer().encode("今天'天气\"\\").ids
    if view == "query":
        np.testing.assert_allclose(names["step"].weights * 100, app.dataframe[0].value["weight"], rtol=1e-4)
        np.testing.assert_allclose(names["pattern"][-1], names["step"].weights, atol=1e-6)


def test_places_that_do_not_exist_are_moved_and_said() -> None:
    app = run(prompt=PROMPT, layer="99", head="-3", position="77")
    assert not app.exception
    assert (app.session_state["layer"], app.session_state["head"], app.session_state["position"]) == (3, 0, 3)
    assert "99 is not a number from 0 to 3" in told(app)
    app = run(prompt=PROMPT, **{"blocks.view": "<b>", "tensor": "x"})
    assert not app.exception and app.session_state["blocks.view"] == "attention"


def test_the_token_in_both_texts_is_never_the_one_put_before_them() -> None:
    first, second = (
        Encoding(text, ids, [b"<bos>", *(char.encode() for char in text)], [(0, 0), *offsets], n_added=1)
        for text, ids, offsets in (("abc", [2, 5, 6, 7], [(0, 1), (1, 2), (2, 3)]), ("cb", [2, 7, 6], [(0, 1), (1, 2)]))
    )
    assert shared_tokens(first, second) == [6, 7]  # in the order of the first


# Interventions

OFF = "blocks.1.attn.head.2,blocks.2.mlp,swap.0.2"


def test_the_interventions_are_what_an_edited_pass_computes() -> None:
    app = run(prompt=PROMPT, **{"blocks.view": "interventions", "interventions": OFF})
    assert not app.exception
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    swapped = [ids[2], ids[1], ids[0], *ids[3:]]

    def head_off(z):
        z = z.clone()
        z[2] = 0
        return z

    edited = lm(swapped, edits={"blocks.1.attn.z": head_off, "blocks.2.mlp.out": lambda out: out * 0})[-1]
    before, after = (logits.double().softmax(-1).numpy() for logits in (lm(ids)[-1], edited))
    assert float(app.metric[0].value) == pytest.approx(0.5 * np.abs(after - before).sum(), abs=1e-4)
    assert float(app.metric[1].value) == pytest.approx(100 * (after - before).max(), abs=0.006)
    table = app.dataframe[0].value
    np.testing.assert_allclose(table["P before"] / 100, before[table["id"]], rtol=1e-5)
    np.testing.assert_allclose(table["Change"] / 100, (after - before)[table["id"]], atol=1e-5)
    assert list(table["Change"]) == sorted(table["Change"], reverse=True)
    assert table["id"].iloc[0] == (after - before).argmax() and table["id"].iloc[-1] == (after - before).argmin()


@pytest.mark.slow
def test_interventions_are_taken_back_undone_and_redone() -> None:
    app = run(prompt=PROMPT, **{"blocks.view": "interventions", "interventions": OFF})
    chips = [button.label for button in app.button if "✕" in button.label]
    assert chips == ["block 1 · head 2 ✕", "block 2 · MLP ✕", "swapped 0 ⇄ 2 ✕"]
    app.button(key="interventions.chip.blocks.2.mlp").click().run()
    assert app.session_state["interventions"] == ["blocks.1.attn.head.2", "swap.0.2"]
    app.button(key="interventions.clear").click().run()
    assert app.session_state["interventions"] == [] and app.button(key="interventions.clear").disabled
    assert app.metric[0].value == "0.0000"
    app.button(key="interventions.undo").click().run()
    app.button(key="interventions.undo").click().run()
    assert app.session_state["interventions"] == OFF.split(",") and app.button(key="interventions.undo").disabled
    app.button(key="interventions.redo").click().run()
    assert app.session_state["interventions"] == ["blocks.1.attn.head.2", "swap.0.2"]
    app.button(key="interventions.swap").click().run()  # the first and the last token
    assert app.session_state["interventions"][-1] == "swap.0.3" and app.button(key="interventions.redo").disabled


def test_interventions_that_do_not_exist_are_left_out_and_said() -> None:
    app = run(prompt="好", **{"blocks.view": "interventions", "interventions": "blocks.9,<b>,swap.0.2,blocks.0"})
    assert not app.exception and app.session_state["interventions"] == ["blocks.0"]
    assert "does not have it: blocks.9 · <b> · swap.0.2" in told(app)


def test_before_and_after_stand_side_by_side_with_the_rest() -> None:
    figure = before_and_after(["<b>", "b"], [0.5, 0.25], [0.125, 0.75], ("Before", "After"), "the others")
    before, after = figure.data
    assert list(before.x) == [0.5, 0.25, 0.25] and list(after.x) == [0.125, 0.75, 0.125]
    assert (before.name, after.name) == ("Before", "After")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "b", "the others"]


@pytest.mark.slow
def test_there_is_one_bar_a_token_until_something_is_changed() -> None:
    figure = before_and_after(["a", "b"], [0.5, 0.25], None, ("Before", "After"), "the others")
    (only,) = figure.data
    assert list(only.x) == [0.5, 0.25, 0.25] and figure.layout.showlegend is False
    for switched, bars in (("", 1), ("blocks.0", 2)):
        app = run(prompt=PROMPT, **{"blocks.view": "interventions", "interventions": switched})
        assert len(figures(app)[0].data) == bars


def test_links_with_the_former_names_of_the_view_and_its_list_still_open_it() -> None:
    app = run(prompt=PROMPT, **{"blocks.view": "switched", "switched": "blocks.0"})
    assert app.session_state["blocks.view"] == "interventions" and app.session_state["interventions"] == ["blocks.0"]


def test_the_diagram_has_the_norms_that_follow_attention_and_mlp() -> None:
    config = ModelConfig(vocab_size=50, d_model=16, n_layers=1, n_heads=4, context_length=9, sandwich_norm=True)
    block = diagram(config, 5, 0, None, "residual", "Block 0").block
    assert [node.name for node in block.attention] == ["attn_norm", "attn", "attn.out", "attn_post_norm"]
    assert [node.name for node in block.mlp] == ["mlp_norm", "mlp", "mlp.out", "mlp_post_norm"]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"position_encoding": "rope"}, "RoPE: q, k rotated"),
        ({"position_encoding": "rope", "qk_norm": True}, "q, k: RMSNorm, RoPE"),
        ({"position_encoding": "alibi"}, "ALiBi: bias on scores"),
        ({"position_encoding": "learned"}, ""),
    ],
)
def test_the_diagram_says_what_is_done_to_queries_and_keys(options: dict[str, Any], note: str) -> None:
    config = ModelConfig(vocab_size=50, d_model=16, n_layers=1, n_heads=4, context_length=9, **options)
    block = diagram(config, 5, 0, None, "attention", "Block 0").block
    assert next(node.note for node in block.attention if node.name == "attn") == note
