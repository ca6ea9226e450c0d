"""What lessons measure, each against the model's own numbers reached another way."""

import pytest
import torch

import lmcore
from pages.lessons import measures

LM = lmcore.load("small-world")
PROMPT = "今天天气"


def probs_after(text: str, lm: lmcore.LanguageModel = LM) -> torch.Tensor:
    return torch.softmax(lm(lm.tokenizer.encode(text).ids)[-1].double(), -1)


def test_what_is_kept_and_how_much_it_had() -> None:
    ordered = probs_after(PROMPT).sort(descending=True).values
    n = measures.candidates(LM, PROMPT, top_p=0.9)
    assert ordered[: n - 1].sum() < 0.9 <= ordered[:n].sum()
    assert measures.kept(LM, PROMPT, top_p=0.9) == pytest.approx(ordered[:n].sum().item(), abs=1e-6)


def test_divergence_from_a_prompt_and_a_model() -> None:
    other = lmcore.load("small-world-none")
    p, q, r = probs_after(PROMPT), probs_after("昨天天气"), probs_after(PROMPT, other)
    assert measures.divergence(LM, PROMPT, "昨天天气") == pytest.approx((p * (p / q).log2()).sum().item(), rel=1e-5)
    assert measures.divergence(LM, PROMPT, against=other) == pytest.approx((p * (p / r).log2()).sum().item(), abs=1e-6)


def test_attention_to_a_token_is_the_sum_over_its_places() -> None:
    text = "小明喜欢小红，小红喜欢"
    at = [measures.attention(LM, text, 1, 1, -1, key) for key in range(6)]
    assert measures.attention(LM, text, 1, 1, -1, "小红") == pytest.approx(at[2] + at[4])
    assert sum(at) == pytest.approx(1, abs=1e-5)


def test_the_lens_at_the_last_depth_is_the_model() -> None:
    assert measures.lens(LM, PROMPT, "不错", 4) == pytest.approx(
        probs_after(PROMPT)[measures.token_id(LM, "不错")].item()
    )
    assert measures.lens_likeliest(LM, PROMPT, 4) == measures.likeliest(LM, PROMPT)
    assert measures.lens_likeliest(LM, PROMPT, 1) != measures.likeliest(LM, PROMPT)


def test_losses_of_a_changed_token_and_after_a_step() -> None:
    changed = measures.loss(LM, "The weather today is nice", 4, " cat")
    assert changed == pytest.approx(measures.loss(LM, "The weather today is cat"))
    before = measures.loss(LM, PROMPT + "不错")
    model = lmcore.load("small-world").model
    assert measures.loss_after_step(LM, PROMPT + "不错", 0.0) == pytest.approx(before)
    ids = torch.tensor(LM.tokenizer.encode(PROMPT + "不错").ids)
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy(model(ids[:-1]), ids[1:])
        slope = sum(g.square().sum().item() for g in torch.autograd.grad(loss, list(model.parameters())))
    # A step so small that the loss falls by rate * |g|^2.
    fallen = before - measures.loss_after_step(LM, PROMPT + "不错", 1e-5)
    assert fallen == pytest.approx(1e-5 * slope, rel=0.2)


def test_texts_and_draws_follow_their_seed() -> None:
    first, again, other = (measures.generated(LM, PROMPT, 12, seed) for seed in (1, 1, 2))
    assert first == again != other
    greedy = lmcore.generate(
        LM, LM.tokenizer.encode(PROMPT).ids, lmcore.SamplingSettings(temperature=0), max_new_tokens=9
    )
    assert measures.generated(LM, PROMPT, 9, temperature=0) == b"".join(step.token for step in greedy).decode()
    assert measures.different(LM, PROMPT, 60, temperature=0) < 30
    assert measures.drawn(LM, PROMPT, "不错", 100, temperature=0) == 100
    assert 50 < measures.drawn(LM, PROMPT, "不错", 100) < 85


def test_rows_of_the_table_that_a_sentence_moves() -> None:
    ids = LM.tokenizer.encode("患者服用华法林后出现黑便").ids
    assert measures.rows_moved(LM, "患者服用华法林后出现黑便", "input") == len(set(ids[:-1]))
    assert measures.rows_moved(LM, "患者服用华法林后出现黑便", "output") == LM.config.vocab_size


def test_parts_of_the_parameters() -> None:
    assert measures.parameters(LM, "", part="embedding") == 1600 * 128
    assert measures.parameters(LM, "", of="gpt2", tied=False, part="head") == 38_597_376


def test_what_cannot_be_measured_is_said() -> None:
    for wanted, measure in (
        ("depth is 9", lambda: measures.lens(LM, PROMPT, "不错", 9)),
        ("layer is 4", lambda: measures.attention(LM, PROMPT, 4, 0, 0, 0)),
        ("no part 'x'|no part x", lambda: measures.parameters(LM, "", part="x")),
        ("no published config", lambda: measures.parameters(LM, "", of="gpt9")),
        ("n is 1000", lambda: measures.generated(LM, PROMPT, 1000)),
        ("no token", lambda: measures.likeliest(LM, "")),
    ):
        with pytest.raises(measures.NotMeasurable, match=wanted):
            measure()
