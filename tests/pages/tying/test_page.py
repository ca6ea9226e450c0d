"""The page on tying and parameters: figures, the curriculum's numbers on screen, and snippets that give the same."""

import copy
import re

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.tying import operations as tie_operations
from lmcore.parameters import PRESETS, compute, count
from pages.figures import theme
from pages.figures.tying import parameters as figures
from tests.lmcore.checkpoints.test_broken_files import rewritten
from tests.lmcore.checkpoints.tiny_gguf import write_gguf
from tests.pages.harness import MODELS, clean, open_page, printed, told

VIEWS = ["storage", "operations", "parameters", "compute", "models", "checks"]
NAMES = {group: group.upper() for group in lmcore.parameters.GROUPS}


def view(name: str, **parameters: str):
    return clean(open_page("tying", **{"prompt": "今天天气", "tying.view": name, **parameters}))


def facts(app) -> dict[str, list[str]]:
    """Return the page's small tables: first cell -> the others."""
    lines = [line for element in app.markdown for line in element.value.split("\n") if line.startswith("|")]
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def test_stacked_bars_keep_amounts_and_a_groups_colour() -> None:
    totals = {"a": {"embedding": 10, "mlp": 30}, "b & c": {"mlp": 5, "head": 15}}
    figure = figures.stacked(totals, group_names=NAMES, value_title="numbers")
    by_name = {trace.name: trace for trace in figure.data}
    assert set(by_name) == {"EMBEDDING", "MLP", "HEAD"}  # groups that nothing has are left out
    assert list(by_name["MLP"].x) == [30, 5] and list(by_name["HEAD"].x) == [0, 15]
    assert list(by_name["MLP"].y) == ["a", "b &amp; c"]
    assert by_name["HEAD"].marker.color == theme.CATEGORICAL[list(NAMES).index("head")]
    share = figures.stacked(totals, group_names=NAMES, value_title="share", share=True)
    np.testing.assert_allclose(np.sum([trace.x for trace in share.data], axis=0), [1.0, 1.0])
    assert [tuple(pair) for pair in share.data[1].customdata] == [(30, 0.75), (5, 0.25)]


def test_treemap_areas_are_the_counts_and_sum_to_the_whole() -> None:
    rows = [("E", "embedding", "2 x 3", 6), ("up", "mlp", "3 x 4", 12), ("down", "mlp", "4 x 3", 12)]
    (areas,) = figures.treemap(rows, group_names=NAMES, root="all").data
    values = dict(zip(areas.ids, areas["values"], strict=True))
    assert (values["root"], values["mlp"], values["mlp/up"]) == (30, 24, 12)
    children = dict(zip(areas.ids, areas.parents, strict=True))
    for parent in set(children.values()) - {""}:
        assert values[parent] == sum(values[child] for child, above in children.items() if above == parent)


def test_stored_numbers_lie_end_to_end() -> None:
    figure = figures.stored({"tied": (6, 0), "untied": (6, 6)}, names=("E", "W"), value_title="numbers")
    assert [list(trace.x) for trace in figure.data] == [[6, 6], [0, 6]]
    assert list(figure.data[1].text) == ["", "6"]


def test_row_cosines_are_counted_once_each() -> None:
    (bars,) = figures.row_cosines([-1.0, 0.01, 0.02, 1.0], x_title="", y_title="").data
    assert sum(bars.y) == 4 and bars.y[0] == bars.y[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lang"), list(zip(MODELS, ["en", "zh"] * len(MODELS), strict=False)))
def test_every_view_runs_with_every_model(name: str, lang: str) -> None:
    for each in VIEWS:
        assert len(view(each, lang=lang, model=name).code) >= 1


def test_storage_is_told_by_identity() -> None:
    app = view("storage", model="small-world-rope-is-not-a-model")
    frame = app.dataframe[0].value.set_index("model")
    one, two, copy = (frame.loc[name] for name in ("small-world", "small-world-untied", "a copy with equal values"))
    assert (one["W is E"], two["W is E"], copy["W is E"]) == ("True", "False", "False")
    assert one["address of E"] == one["address of W"] and copy["address of E"] != copy["address of W"]
    assert (one["largest |E − W|"], copy["largest |E − W|"]) == (0.0, 0.0) and two["largest |E − W|"] > 0
    assert (one["numbers in memory"], copy["numbers in memory"]) == (1600 * 128, 2 * 1600 * 128)
    assert (one["head.weight in the saved file"], two["head.weight in the saved file"]) == ("False", "True")
    assert app.metric[0].value == "204,800"
    assert "small-world True True 0.0" in printed(app)


@pytest.mark.parametrize("name", MODELS)
def test_what_tying_saves_is_vocabulary_times_width(name: str) -> None:
    app, lm = view("storage", model=name), lmcore.load(name)
    assert app.metric[0].value == f"{lm.config.vocab_size * lm.config.d_model:,}"
    assert app.metric[0].label == ("Tying saves" if lm.config.tie_embeddings else "Tying would save")
    held = sum(p.numel() for p in lm.model.parameters())  # torch names a shared Parameter once
    assert any(f"{held:,} parameters" in caption.value for caption in app.caption)


# CURRICULUM section 8, as the reader sees it.
CURRICULUM = {
    "curriculum-12x768": {
        "total": "82,594,560",
        "token embedding": "4,718,592",
        "matrices of one block": "6,488,064",
        "norms": "19,200",
        "total if untied": "87,313,152",
    },
    "gpt2": {"total": "124,439,808", "total if untied": "163,037,184", "LM head": "38,597,376"},
    "bert-base": {"total": "109,482,240", "token embedding": "23,440,896"},
    "llama-7b": {"total": "6,738,415,616", "LM head": "131,072,000"},
    "llama-65b": {"total": "65,285,660,672", "LM head": "262,144,000"},
    "gpt3-175b": {"token embedding": "617,558,016"},
    "transformer-2017": {"token embedding": "18,944,000", "tying saves": "37,888,000"},
}
SHARES = {"gpt2": "31.02 %", "bert-base": "21.41 %", "llama-7b": "1.95 %", "llama-65b": "0.40 %", "gpt3-175b": "0.35 %"}


@pytest.mark.parametrize("name", CURRICULUM)
def test_figures_of_the_curriculum(name: str) -> None:
    app = view("parameters", **{"tying.subject": name})
    found = facts(app)
    assert {label: found[label][0] for label in CURRICULUM[name]} == CURRICULUM[name]
    if name in SHARES:
        assert found["LM head"][1] == SHARES[name]
    frame = app.dataframe[0].value
    assert f"{frame['parameters added'].sum():,}" == found["total"][0]
    for formula, size in zip(frame["with numbers"], frame["size"], strict=True):
        assert np.prod([int(factor) for factor in formula.split(" x ")], dtype=object) == size
    assert str(count(PRESETS[name]).total) in printed(app)


def test_memory_is_bytes_a_number_times_parameters() -> None:
    frame = view("parameters", **{"tying.subject": "gpt2"}).dataframe[1].value.set_index("dtype")
    assert frame.loc["float32", "bytes"] == 4 * 124_439_808 and frame.loc["int8", "bytes"] == 124_439_808


@pytest.mark.parametrize(("how", "total"), [("given", "124,439,808"), ("untied", "163,037,184")])
def test_a_model_can_be_counted_untied(how: str, total: str) -> None:
    assert facts(view("parameters", **{"tying.subject": "gpt2", "tying.count": how}))["total"][0] == total


def test_sliders_begin_at_the_worked_example_and_follow() -> None:
    app = view("parameters", **{"tying.subject": "free"})
    assert facts(app)["total"][0] == "82,594,560"
    app.slider(key="n_kv_heads").set_value(4).run()
    assert facts(app)["total"][0] == f"{82_594_560 - 12 * 2 * 768 * (768 - 4 * 64):,}"
    app.toggle(key="gated").set_value(False).run()
    fewer = 12 * 2 * 768 * (768 - 4 * 64) + 12 * 768 * 1792
    assert facts(app)["total"][0] == f"{82_594_560 - fewer:,}"
    assert str(82_594_560 - fewer) in printed(app)


@pytest.mark.parametrize("wrong", [{"n_heads": "7"}, {"n_kv_heads": "5"}])
@pytest.mark.parametrize("each", ["parameters", "compute"])
def test_sizes_that_do_not_fit_are_said(each: str, wrong: dict[str, str]) -> None:
    app = view(each, **{"tying.subject": "free", **wrong})
    assert "do not match" in told(app) and not app.dataframe
    assert next(iter(wrong)) in app.code[0].value


def test_compute_of_llama_7b_in_macs_and_flops() -> None:
    app = view("compute", **{"tying.subject": "llama-7b", "past": "0", "prompt_tokens": "1", "dtype": "float16"})
    found = facts(app)
    assert found["the head, for one token"] == ["131,072,000", "262,144,000"]
    assert found["the MLP of one layer, for one token"] == ["135,266,304", "270,532,608"]
    by_hand = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 4096 * 32000
    assert found["one generated token, after 0 others"] == [f"{by_hand:,}", f"{2 * by_hand:,}"]
    assert found["weights"][0] == f"{2 * 6_738_415_616:,}"
    assert found["KV cache of one sequence of 1 tokens"][0] == f"{2 * 32 * 4096 * 2:,}"
    frame = app.dataframe[0].value
    assert frame["MACs"].sum() * 2 == frame["FLOPs = 2 × MACs"].sum() == 2 * by_hand
    assert f"{by_hand} {2 * by_hand}" in printed(app)


def test_prompt_can_be_counted_with_the_last_logits_only() -> None:
    state = {"tying.subject": "gpt2", "prompt_tokens": "100"}
    full, last = (facts(view("compute", **state, last_logits=on))["a prompt of 100 tokens"][0] for on in "01")
    assert int(full.replace(",", "")) - int(last.replace(",", "")) == 99 * 768 * 50257


@pytest.mark.parametrize("name", ["bert-base", "t5-small", "transformer-2017"])
def test_models_that_are_no_decoders_are_said_to_be_left_out(name: str) -> None:
    app = view("compute", **{"tying.subject": name})
    assert PRESETS[name].title in app.info[0].value and not app.dataframe


def test_every_preset_is_compared_with_its_source() -> None:
    app = view("models")
    frame = app.dataframe[0].value.set_index("model")
    assert len(frame) == len(PRESETS) + 1
    for config in PRESETS.values():
        counted = count(config)
        assert (frame.loc[config.title, "total"], frame.loc[config.title, "LM head"]) == (
            counted.total,
            counted.head_size,
        )
        assert config.title in told(app)
        assert config.tie_source.replace("_", "\\_") in told(app)
    assert list(frame["total"]) == sorted(frame["total"])
    assert frame.loc["LLaMA 7B", "counted as"] == "untied" and frame.loc["Gemma 3 1B", "counted as"] == "tied"


def card_text(app) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.code[:-1]])


@pytest.mark.slow
def test_checks_give_the_right_values() -> None:
    app = view("checks")
    text = card_text(app)
    assert [f"**{number}** · " in text for number in range(1, 14)] == [True] * 12 + [False]
    for value in (
        "4.67 / 0.94 / 93.75 / 0.13 / 0.52 %",
        "19.66 / 11.53 / 53.44 / 5.92 / 9.44 %",
        "**108.6 %**",
        "617,558,016",
        "402,240",
        "31.0 %",
        "25 x 768 = 19,200",
        "135,266,304 MACs = 270,532,608 FLOPs",
        "131,072,000 MACs = 262,144,000 FLOPs",
        "**270.5** and **262.1**",
        "head.bias: 1,600",
        "head.weight is token_embedding.weight: True",
        "**92.25 %**",
        "toy (V = 6): [1, 1, 1, 1]",
    ):
        assert value in text, value
    assert re.search(r"LLaMA 7B: untied.*Llama 2 7B: untied", text, re.DOTALL)
    for name in ("bert-base", "llama-7b"):
        assert PRESETS[name].tie_source in text
    assert len(app.dataframe[0].value) == 12
    out = printed(app)
    assert "617558016" in out and str(compute(PRESETS["llama-7b"]).rows[-1].flops) in out


def test_check_of_two_gradients_is_the_cosine_of_autograds_parts() -> None:
    lm = lmcore.load("small-world")
    ids = torch.tensor(lm.tokenizer.encode("患者服用华法林后出现黑便").ids)
    untied = copy.deepcopy(lm.model)
    untied.head.weight = torch.nn.Parameter(untied.head.weight.detach().clone())
    torch.nn.functional.cross_entropy(untied(ids[:-1]), ids[1:]).backward()
    first, second = (grad.flatten() for grad in (untied.token_embedding.weight.grad, untied.head.weight.grad))
    cosine = torch.nn.functional.cosine_similarity(first, second, dim=0).item()
    assert f"{cosine:+.4f}" in card_text(view("checks", **{"checks.topic": "tying"}))


def test_check_of_similarity_counts_where_cosine_and_logit_disagree() -> None:
    lm, trace = lmcore.load("small-world"), lmcore.Trace()
    logits = lm(lm.tokenizer.encode("今天天气不错，我喜欢猫").ids, trace=trace)
    rows = torch.nn.functional.normalize(lm.model.head.weight.detach(), dim=-1)
    differ = ((trace["hidden_state"] @ rows.T).argmax(-1) != logits.argmax(-1)).sum().item()
    assert f"{differ} of {len(logits)} differ" in card_text(view("checks", **{"checks.topic": "reading"}))


def test_a_check_can_be_moved() -> None:
    app = view("checks", **{"checks.topic": "sampling"})
    app.slider(key="checks.t0.5").set_value(1.0).run()
    assert "15.55 / 6.99 / 69.71 / 2.57 / 5.18 %" in card_text(app)  # the curriculum's T = 1
    app.slider(key="checks.top_p").set_value(0.5).run()
    assert "**69.71 %**" in card_text(app)
    app = view("checks", **{"checks.topic": "counting"})
    app.segmented_control(key="checks.matrices").set_value(2).run()
    app.segmented_control(key="checks.unit").set_value("MACs").run()
    assert "→ 180.4 / 131.1 M" in card_text(app)  # where the claim comes from
    app.slider(key="checks.layers").set_value(2).run()
    assert "5 x 768 = 3,840" in card_text(app)


@pytest.mark.parametrize("operation", ["assign_to_head", "to_meta", "three_ways", "padding"])
def test_operations_on_a_tie_show_what_torch_did(operation: str) -> None:
    app = view("operations", **{"tying.operation": operation, "tie.vocab_size": "100", "tie.d_model": "8"})
    outcome = tie_operations.run(operation, 100, 8)
    shown_frame = app.dataframe[0].value
    assert shown_frame["Parameter"].tolist() == [f"P{held.parameter}" for held in (*outcome.before, *outcome.after)]
    assert shown_frame["bytes"].tolist() == [held.nbytes for held in (*outcome.before, *outcome.after)]
    assert ("Not tied" in card_text(app)) == (not outcome.matrices_share)
    assert len(app.dataframe[1].value) == len(tie_operations.OPERATIONS)
    assert f"{outcome.matrices_share} {outcome.nbytes}" in printed(app)


def test_names_lead_to_parameters_and_these_to_storages() -> None:
    held = [("a", 1, "A", "8 B"), ("b", 1, "A", "8 B"), ("c", 2, "B", "8 B")]
    figure = figures.holding(held, titles=("name", "Parameter", "storage"))
    paths = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(paths) == 3 and paths[0].y[1:] == paths[1].y[1:] != paths[2].y[1:]
    assert [list(trace.text) for trace in figure.data if trace.text] == [["a", "b", "c"], ["P1", "P2"], ["A", "B"]]


def test_a_tied_matrix_that_a_file_stores_twice_is_said_to_be_one(tmp_path, monkeypatch) -> None:
    model = write_gguf("qwen2", tmp_path / "whole.gguf")
    table = model.model.embed_tokens.weight.detach().clone()
    rounded = table + 0.02 * torch.randn(table.shape, generator=torch.Generator().manual_seed(0)) * table.abs().mean()
    change = {"token_embd.weight": table.numpy(), "output.weight": rounded.numpy()}
    path = rewritten((tmp_path / "whole.gguf").read_bytes(), tmp_path, lambda _fields, tensors: tensors.update(change))
    folder = tmp_path / "models"
    folder.mkdir()
    path.rename(folder / "twice.gguf")
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said = told(view("storage", model="twice"))
    cosine = torch.nn.functional.cosine_similarity(table.double(), rounded.double(), dim=-1).mean().item()
    config = lmcore.load("twice").config
    assert f"mean cosine between the two rows of a token is {cosine:.4f}" in said
    assert f"{count(config, tie_embeddings=True).total:,}" in said and f"{count(config).total:,}" in said
    assert "learned separately" not in said.split("mean cosine")[0]
