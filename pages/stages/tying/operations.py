"""What becomes of a tied matrix when it is assigned, converted, copied, saved and loaded, tried on a small module."""

from __future__ import annotations

import inspect

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.tying.operations import OPERATIONS, Held, Outcome, run
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.theme import fmt_count
from pages.figures.tying import parameters as figures

CODE = """
from lmcore.analysis.tying.operations import run

outcome = run({operation!r}, vocab_size={vocab_size}, d_model={d_model})
for held in outcome.before:
    print("before", held.name, held.parameter, held.storage, hex(held.address), held.nbytes)
for held in outcome.after:
    print("after", held.name, held.parameter, held.storage, hex(held.address), held.nbytes)
print(outcome.matrices_share, outcome.nbytes, outcome.facts)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    told = _told()
    controls, picture = page.workbench()
    with controls:
        operation = widgets.select(
            "tying.operation",
            _("Operation"),
            list(OPERATIONS),
            "assign_to_head",
            format_func=lambda name: told[name][0],
        )
        vocab_size = widgets.slider("tie.vocab_size", "vocab_size", 4, 5000, 1000)
        d_model = widgets.slider("tie.d_model", "d_model", 1, 128, 64)
        st.caption(
            _(
                "Each change is run in torch on this server: an Embedding and a Linear have one Parameter "
                "each, until one is given the Parameter of the other."
            )
        )
    outcomes = {name: run(name, vocab_size, d_model) for name in OPERATIONS}
    outcome = outcomes[operation]
    with picture:
        before, after = st.columns(2, gap="large")
        with before:
            _picture(outcome.before, _("before"), "tie-before")
        with after:
            _picture(outcome.after, _("after"), "tie-after")
        st.markdown(f"**{_verdict(outcome)}** {told[operation][1]}")
        st.code(inspect.getsource(OPERATIONS[operation][1]).strip(), language="python", wrap_lines=True)
        if outcome.facts:
            st.code("\n".join(f"{said}: {value}" for said, value in outcome.facts.items()), language=None)
    page.numbers_table(_held(outcome), "tie-operation", {_("bytes"): "count"})
    st.subheader(_("All operations"), anchor=False)
    page.numbers_table(
        pd.DataFrame(
            {
                _("operation"): told[name][0],
                _("the matrices share one storage"): str(found.matrices_share),
                _("and one Parameter"): str(_one_parameter(found)),
                _("bytes after"): found.nbytes,
            }
            for name, found in outcomes.items()
        ),
        "tie-operations",
        {_("bytes after"): "count"},
    )
    page.snippet(CODE.format(operation=operation, vocab_size=vocab_size, d_model=d_model))


def _picture(held: tuple[Held, ...], when: str, key: str) -> None:
    st.caption(when)
    page.figure(
        figures.holding(
            [
                (each.name, each.parameter, each.storage, f"{fmt_count(each.nbytes)} B · {each.dtype}, {each.device}")
                for each in held
            ],
            titles=(_("name"), "Parameter", _("storage")),
        ),
        key,
        _("The names, the Parameters they refer to, and the storages that hold the numbers: {when}.").format(when=when),
        said=False,
    )


def _verdict(outcome: Outcome) -> str:
    if outcome.matrices_share and _one_parameter(outcome):
        return _("Tied: one Parameter, one storage.")
    if outcome.matrices_share:
        return _("One storage, but two tensor objects.")
    return _("Not tied: two storages.")


def _one_parameter(outcome: Outcome) -> bool:
    return len({held.parameter for held in outcome.after if len(held.shape) == 2}) == 1


def _held(outcome: Outcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("when"): when,
            _("name"): each.name,
            "Parameter": f"P{each.parameter}",
            _("storage"): each.storage,
            "data_ptr()": hex(each.address),
            _("shape"): str(list(each.shape)),
            "dtype": each.dtype,
            "device": each.device,
            _("bytes"): each.nbytes,
        }
        for when, held in ((_("before"), outcome.before), (_("after"), outcome.after))
        for each in held
    )


def _told() -> dict[str, tuple[str, str]]:
    """Return what each operation is called and what to see in it."""
    return {
        "assign_to_head": (
            "head.weight = embedding.weight",
            _("Assigning the Parameter ties the two. The values of the embedding table are kept."),
        ),
        "assign_to_embedding": (
            "embedding.weight = head.weight",
            _("Assigning in the other direction also ties. The values of the head are kept."),
        ),
        "copy_the_values": (
            _("copy the values"),
            _("Equal values are not a tie: the first step of training makes them differ."),
        ),
        "wrap_the_data": (
            "nn.Parameter(embedding.weight.data)",
            _("A second Parameter over the same storage: an optimizer would update it twice and keep two states."),
        ),
        "step": (_("a training step, tied"), _("One gradient, the sum of both uses, updates the one matrix once.")),
        "step_after_copying": (
            _("a training step after copying"),
            _("Each matrix has a gradient of its own; after one step their values differ."),
        ),
        "to_dtype": (
            ".to(torch.float16)",
            _("The Parameter stays the same object and its numbers are replaced: half the bytes, and still tied."),
        ),
        "deepcopy": (
            "copy.deepcopy(module)",
            _("The copy is tied internally and shares nothing with the original."),
        ),
        "deepcopy_of_parts": (
            _("copy.deepcopy of each part"),
            _("When the parts are copied one at a time, each gets a matrix of its own."),
        ),
        "state_dict": (
            "torch.save(state_dict)",
            _(
                "The dictionary lists both names. The file stores the numbers once, and the two tensors that "
                "are read back share them."
            ),
        ),
        "load_into_tied": (
            _("load_state_dict, into a tied module"),
            _("Values are copied into the same matrix twice: it stays tied."),
        ),
        "load_into_untied": (
            _("load_state_dict, into an untied module"),
            _("Only values are loaded: an untied module stays untied, with equal values."),
        ),
        "safetensors_file": (
            "safetensors",
            _(
                "The format refuses shared tensors. Its save_model writes the matrix under one name, and "
                "loading into a tied module restores both names."
            ),
        ),
        "to_meta": (
            '.to("meta")',
            _(
                "When a module moves to another device, each name gets a new Parameter, so the tie is lost. On "
                "the meta device both addresses are 0, so equal addresses prove nothing."
            ),
        ),
        "made_on_meta": (
            _("made on the meta device"),
            _(
                "A model made on the meta device is tied: it has shapes and shared objects, but no numbers and no "
                "memory."
            ),
        ),
        "from_meta": (
            'to_empty(device="cpu")',
            _("When memory is allocated, each name gets its own. Tie again after to_empty and before loading."),
        ),
        "assign_to_meta": (
            "load_state_dict(..., assign=True)",
            _(
                "Each name gets a Parameter of its own, so the optimizer sees two and a count finds two: tie again "
                "after loading. lmcore's own Model does so."
            ),
        ),
        "three_ways": (
            _("three-way tying"),
            _(
                "Both embedding tables and the output share one matrix, as in the 2017 Transformer: one Parameter "
                "with three names."
            ),
        ),
        "bias": (
            _("with a separate bias"),
            _("The matrix is tied and the bias is a Parameter of its own: tying does not require removing it."),
        ),
        "padding": (
            "padding_idx",
            _("The lookup gives the padding row no gradient. The tied head does, so the row does not stay zero."),
        ),
    }
