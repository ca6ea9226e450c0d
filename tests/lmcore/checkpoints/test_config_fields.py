"""Config files at odds with themselves or with their weights: transformers' numbers, or a sentence that refuses."""

from __future__ import annotations

import json

import pytest
import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, Gemma3Config, Gemma3ForConditionalGeneration

import lmcore
from lmcore.checkpoints import hf_fields
from lmcore.checkpoints.fields import Fields
from lmcore.sampling.stage import Range
from tests.lmcore.checkpoints.tiny import CASES, tokenizer, write_folder

IDS = torch.randint(0, 282, (2, 23), generator=torch.Generator().manual_seed(3))
LINEAR = {"rope_type": "linear", "factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10}


def test_a_whole_number_beyond_floating_point_is_refused():
    huge = 10**400
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        Fields({"rope_theta": huge}).real("rope_theta")
    with pytest.raises(ValueError, match="must be a list of numbers"):
        hf_fields._factors(Fields({"long_factor": [1.0, huge]}), "long_factor")
    assert huge not in Range()


def rewrite(folder, **values):
    """Change the fields of a folder's config.json; None takes one away."""
    path = folder / "config.json"
    changed = json.loads(path.read_text()) | values
    path.write_text(json.dumps({name: value for name, value in changed.items() if value is not None}))


def change_tensors(folder, change):
    """Write a folder's weights anew after `change` has had its hands on the table of tensors."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@torch.inference_mode()
def require_equal(folder):
    """Load a folder here and with transformers, and compare the logits; return ours."""
    lm = lmcore.load(folder)
    theirs = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()(IDS).logits
    torch.testing.assert_close(lm(IDS), theirs, rtol=0, atol=1e-4 * float(theirs.max() - theirs.min()))
    return lm


# ---- RoPE, described twice ----


@pytest.mark.slow
@pytest.mark.parametrize("older", [None, {}, LINEAR, {"type": "linear", "factor": 4.0}, YARN, {"rope_type": "default"}])
@pytest.mark.parametrize("newer", [None, {"rope_type": "default", "rope_theta": 500.0}, YARN | {"rope_theta": 700.0}])
@pytest.mark.parametrize("case", ["llama", "qwen2", "qwen3"])
def test_two_tables_of_ropes_parameters_mean_what_transformers_makes_of_them(tmp_path, case, newer, older):
    write_folder(case, tmp_path)
    rewrite(tmp_path, rope_parameters=newer, rope_scaling=older, rope_theta=300.0)
    lm = require_equal(tmp_path)
    if older in (LINEAR, YARN):
        assert lm.config.rope_scaling.kind == older["rope_type"]


@pytest.mark.parametrize("older", [LINEAR, {"rope_type": "default"}])
def test_gemmas_older_table_changes_the_newers_global_blocks(tmp_path, older):
    write_folder("gemma3", tmp_path)
    tables = {
        "full_attention": {"rope_type": "default", "rope_theta": 3e4},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    }
    rewrite(tmp_path, rope_parameters=tables, rope_scaling=older)
    config = require_equal(tmp_path).config
    assert (config.rope_scaling is None) == (older != LINEAR)
    assert (config.rope_base, config.rope_base_local) == (3e4, 500.0)


YARNS = [
    YARN | {"beta_fast": 8, "beta_slow": 2},
    YARN | {"attention_factor": 1.3},
    YARN | {"truncate": False},
    YARN | {"mscale": 0.7, "mscale_all_dim": 0.5},
    {"rope_type": "yarn", "factor": 8.0},
]


@pytest.mark.parametrize("table", [*YARNS, {"rope_type": "dynamic", "factor": 4.0}])
@pytest.mark.parametrize("case", ["llama", "qwen3"])
def test_a_scaling_of_rope_equals_transformers(tmp_path, case, table):
    write_folder(case, tmp_path)
    rewrite(tmp_path, rope_parameters=table | {"rope_theta": 500.0})
    require_equal(tmp_path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rope_parameters": {"rope_type": "longrope", "factor": 2.0}}, "needs as many short_factors as long_factors"),
        ({"rope_parameters": {"rope_type": "su"}}, "rope_type = 'su' is not supported"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor = 0.5"),
        ({"rope_parameters": {"rope_type": "default", "mrope_section": [2, 2, 2]}}, "mrope_section = [2, 2, 2]"),
    ],
)
def test_a_scaling_that_is_not_read_is_refused_by_name(tmp_path, values, words):
    write_folder("llama", tmp_path)
    rewrite(tmp_path, **values)
    with pytest.raises(ValueError) as caught:
        lmcore.load(tmp_path)
    assert words in str(caught.value)


# ---- windows that follow from other fields ----


@pytest.mark.parametrize(("case", "first"), [("qwen2", 1), ("qwen3", 2), ("qwen2", 28)])
def test_windows_without_a_list_of_layers_begin_where_transformers_begins(tmp_path, case, first):
    write_folder(case, tmp_path)
    rewrite(tmp_path, layer_types=None, use_sliding_window=True, sliding_window=5, max_window_layers=first)
    assert require_equal(tmp_path).config.local_layers == tuple(range(first, 3))


def test_granite_4_without_rope_turns_nothing(tmp_path):
    write_folder("granite 4", tmp_path)
    rewrite(tmp_path, position_embedding_type="nope", layer_types=["attention", "attention"])
    assert require_equal(tmp_path).config.unrotated_layers == (0, 1)


def test_what_the_larger_models_of_a_family_have_is_refused_by_name(tmp_path):
    refused = [
        ("granite 4", {"layer_types": ["mamba", "attention"]}, "layer_types = ['mamba', 'attention'] must be"),
        ("granite 4", {"num_local_experts": 4}, "num_local_experts = 4 is not supported"),
        ("granite 4", {"num_local_experts": None}, "num_local_experts = 8 is not supported"),
        ("stablelm", {"use_parallel_residual": True}, "use_parallel_residual = True is not supported"),
        ("stablelm", {"qk_layernorm": True}, "qk_layernorm = True would change the numbers"),
    ]
    for number, (case, values, words) in enumerate(refused):
        folder = tmp_path / f"{number}"
        write_folder(case, folder)
        rewrite(folder, **values)
        with pytest.raises(ValueError) as caught:
            lmcore.load(folder)
        assert words in str(caught.value), caught.value


# ---- a head of its own ----


@pytest.mark.parametrize("case", ["llama", "gpt2", "qwen2", "qwen3", "gemma3"])
@pytest.mark.parametrize("said", [True, None])
def test_a_head_of_its_own_counts_also_where_the_config_says_tied(tmp_path, case, said):
    write_folder(case, tmp_path)
    table = "transformer.wte.weight" if case == "gpt2" else "model.embed_tokens.weight"
    own = torch.randn(tokenizer().vocab_size, 48, generator=torch.Generator().manual_seed(1))
    change_tensors(tmp_path, lambda t: t.update({"lm_head.weight": own}))
    rewrite(tmp_path, tie_word_embeddings=said)
    assert require_equal(tmp_path).config.tie_embeddings is False
    change_tensors(tmp_path, lambda t: t.update({"lm_head.weight": t[table].clone()}))
    rewrite(tmp_path, tie_word_embeddings=True)
    assert require_equal(tmp_path).config.tie_embeddings is True
    change_tensors(tmp_path, lambda t: t.pop(table))  # one of the two is enough
    assert require_equal(tmp_path).config.tie_embeddings is True


@pytest.mark.parametrize("case", ["llama", "gpt2", "gemma3"])
def test_a_head_that_cannot_be_used_is_refused(tmp_path, case):
    write_folder(case, tmp_path)
    rewrite(tmp_path, tie_word_embeddings=True)
    change_tensors(tmp_path, lambda t: t.update({"lm_head.weight": torch.ones(300, 48)}))
    with pytest.raises(ValueError, match=r"own head has shape \[300, 48\], its embedding \[282, 48\]"):
        lmcore.load(tmp_path)
    change_tensors(
        tmp_path,
        lambda t: t.update({"lm_head.weight": None, "lm_head.bias": torch.ones(282)}) or t.pop("lm_head.weight"),
    )
    with pytest.raises(ValueError, match="'head.bias' is not part of this model"):
        lmcore.load(tmp_path)


@pytest.mark.parametrize("inner", [None, True, False])
@pytest.mark.parametrize("outer", [None, True, False])
def test_of_a_model_that_sees_pictures_the_outer_switch_ties(tmp_path, outer, inner):
    text = {name: value for name, value in CASES["gemma3"][2].items()} | {"vocab_size": tokenizer().vocab_size}
    vision = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28)
    config = Gemma3Config(text_config=text, vision_config=vision | {"patch_size": 14}, mm_tokens_per_image=4)
    config.tie_word_embeddings = config.text_config.tie_word_embeddings = False
    torch.manual_seed(5)
    model = Gemma3ForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    model.save_pretrained(tmp_path)
    tokenizer().save(tmp_path / "tokenizer.json")
    values = json.loads((tmp_path / "config.json").read_text())
    text = values["text_config"] | {"tie_word_embeddings": inner}
    text = {name: value for name, value in text.items() if value is not None}
    rewrite(tmp_path, tie_word_embeddings=outer, text_config=text)
    with torch.inference_mode():
        theirs = (
            Gemma3ForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager").eval()(IDS).logits
        )
        lm = lmcore.load(tmp_path)
        assert lm.config.tie_embeddings is False  # the file holds a head of its own, whatever is said
        torch.testing.assert_close(lm(IDS), theirs, rtol=0, atol=1e-4 * float(theirs.max() - theirs.min()))
        change_tensors(tmp_path, lambda t: t.pop(next(name for name in t if name.endswith("lm_head.weight"))))
        if outer is False:
            with pytest.raises(ValueError, match="'head.weight' is missing"):
                lmcore.load(tmp_path)
        else:
            assert lmcore.load(tmp_path).config.tie_embeddings is True


# ---- fields and tensors that change nothing ----

ASKING_NOTHING = {
    "n_special": 0,
    "_num_labels": 2,
    "unsloth_version": "2025.1",
    "unsloth_fixed": True,
    "output_past": True,
    "do_sample": True,
    "max_length": 20,
    "gradient_checkpointing": True,
    "partial_rotary_factor": 1.0,
    "finetuning_task": "chat",
    "clip_qkv": None,
    "num_experts": 0,
    "quantization_config": None,
}


@pytest.mark.parametrize("case", ["llama", "qwen2", "gemma3", "gpt2"])
def test_fields_that_change_no_number_are_let_through(tmp_path, case):
    write_folder(case, tmp_path)
    before = lmcore.load(tmp_path)(IDS)
    rewrite(tmp_path, **ASKING_NOTHING)
    torch.testing.assert_close(require_equal(tmp_path)(IDS), before)


@pytest.mark.parametrize(
    "values",
    [
        {"clip_qkv": 8.0},
        {"attention_sinks": 4},
        {"partial_rotary_factor": 0.5},
        {"num_local_experts": 8},
        {"quantization_config": {"quant_method": "gptq"}},
        {"logit_scale": 0.5},
        {"use_rope": False},
        {"no_rope_layers": [1, 0, 1]},
    ],
)
@pytest.mark.parametrize("case", ["llama", "gpt2", "gemma3"])
def test_a_field_that_would_change_the_numbers_is_refused(tmp_path, case, values):
    write_folder(case, tmp_path)
    rewrite(tmp_path, **values)
    ((name, value),) = values.items()
    with pytest.raises(ValueError) as caught:
        lmcore.load(tmp_path)
    assert f"config.json: {name} = {value!r} would change the numbers" in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32])
def test_the_masks_that_old_files_store_are_not_looked_at(tmp_path, dtype):
    write_folder("gpt2", tmp_path)
    mask = torch.ones(1, 1, 40, 40).tril().to(dtype)
    change_tensors(tmp_path, lambda t: t.update({f"transformer.h.{i}.attn.bias": mask.clone() for i in range(3)}))
    require_equal(tmp_path)


def test_two_names_for_one_tensor_are_refused(tmp_path):
    write_folder("llama", tmp_path)
    change_tensors(tmp_path, lambda t: t.update({"norm.weight": t["model.norm.weight"] + 1}))
    with pytest.raises(ValueError, match="tensors 'model.norm.weight' and 'norm.weight' stand for the same weights"):
        lmcore.load(tmp_path)
