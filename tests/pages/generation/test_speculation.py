"""The view of speculation: what it shows is what `speculate` says."""

import pytest

import lmcore
from lmcore.generation.speculative import speculate
from pages.common.escape import visible
from tests.pages.generation.page import view
from tests.pages.harness import clean, figures, part, printed, tables, told

pytestmark = pytest.mark.slow
ASKED = {"prompt": "The king", "temperature": "2.0", "top_p": "1", "speculation.n": "3", "speculation.tokens": "30"}


def test_rounds_pictures_and_sums_are_those_of_speculate() -> None:
    app = view("speculation", **ASKED)
    target, draft = lmcore.load("small-world"), lmcore.load("small-world-none")
    ids = target.tokenizer.encode("The king").ids
    settings = lmcore.SamplingSettings(temperature=2.0, seed=5)
    *_, found = speculate(target, draft, ids, settings, n_draft=3, max_new_tokens=30, stop_ids=target.end_tokens)
    assert f"**{len(found.ids)} tokens in {len(found.rounds)} passes" in told(app)
    assert f"{found.accepted} of {found.tested} drafts accepted" in told(app)
    assert f"gives {found.expected_tokens_per_pass:.2f}" in told(app)
    drafts = [each for one in found.rounds for each in one.drafts]
    frame = tables(app)[-1]
    assert frame["id"].tolist() == [each.token_id for each in drafts]
    assert frame["p"].tolist() == pytest.approx([100 * each.p for each in drafts], abs=1e-4)
    tokens = [each for each in part(app, "generated_text")["tokens"] if each["kind"] != "prompt"]
    kept = [each for each in tokens if each["kind"] in ("drawn", "residual", "bonus")]
    assert len(kept) == len(found.ids) and len(tokens) == len(drafts) + sum(
        x.token_id is not None for x in found.rounds
    )
    assert sum(each["kind"] == "refused" for each in tokens) == found.tested - found.accepted
    refused = next(each for each in drafts if each.fate == "refused")
    p, q, left = figures(app)[0].data
    at = next(place for place, width in enumerate(p.marker.line.width) if width)
    assert (p.x[at], q.x[at]) == pytest.approx((refused.p, refused.q), abs=1e-6)
    assert all(sum(bar.x) == pytest.approx(1, abs=1e-9) for bar in (p, q, left))
    assert f"u = {refused.uniform:.4f} is not below it: refused" in told(app)
    accepted, tested = printed(app).splitlines()[0].split()[:2]
    assert (int(accepted), int(tested)) == (found.accepted, found.tested)


def test_greedily_both_ways_it_is_the_greedy_text_and_the_lines_of_python_run() -> None:
    app = view("speculation", **{**ASKED, "temperature": "0", "top_k": "1", "speculation.greedy": "1", "lang": "zh"})
    lm = lmcore.load("small-world")
    settings = lmcore.SamplingSettings(temperature=0)
    ids = lm.tokenizer.encode("The king").ids
    steps = lmcore.generate(lm, ids, settings, max_new_tokens=30, stop_ids=lm.end_tokens)
    kept = [t["token"] for t in part(app, "generated_text")["tokens"] if t["kind"] in ("drawn", "residual", "bonus")]
    assert kept == [visible(step.token) for step in steps]
    assert "draft_settings=lmcore.SamplingSettings(temperature=0" in app.code[-1].value and printed(app)


def test_a_model_may_draft_for_itself() -> None:
    app = view("speculation", **{**ASKED, "speculation.draft": "small-world"})
    assert "100.0 %" in told(app)
    assert not [t for t in part(app, "generated_text")["tokens"] if t["kind"] in ("refused", "unread", "residual")]
    clean(app)
