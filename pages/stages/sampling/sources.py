"""Where the logits come from: the model and a position of the prompt, a step of a generation that was kept, the worked
example, or the reader's own."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from lmcore.sampling import History
from pages.common import link, session, widgets
from pages.common.text import _, ngettext, visible
from pages.figures.theme import fmt_probability
from pages.live.long_text import long_text
from pages.stages.sampling import kept, worked
from pages.stages.sampling.own_logits import OwnLogits, read

MAX_IN_ADDRESS = 800  # longer texts stay in the session
MAX_CHARACTERS = 20_000_000
EXAMPLE = "很: 2.3\n好: 1.5\n不错: 3.8\n真: 0.5\n差: 1.2"
MAX_PROBLEMS = 5
_OPENED = "own_logits.opened"


@dataclass(frozen=True)
class Source:
    """Logits of one position.

    Attributes:
        logits: [V]; float32 from a model, float64 from a text.
        token: the text of a token, by id.
        encode: ids of a text in this vocabulary.
        history: the tokens before, for the penalties.
        code: Python that defines `logits`, and what `history_code` needs.
        history_code: Python that gives `history`.
    """

    logits: np.ndarray
    token: Callable[[int], bytes | str]
    encode: Callable[[str], Sequence[int]]
    history: History
    code: str
    history_code: str = "lmcore.History()"


def choose(beside: Callable[[], None]) -> Source:
    """Let the reader choose where the logits come from, and return them; a source without logits stops the page.

    Args:
        beside: shows what else can be opened, in the same line.
    """
    titles = {
        "model": _("The model, at a position"),
        "step": _("A step of a generation"),
        "worked": _("Worked example"),
        "own": _("Your own logits"),
    }
    kind = widgets.views("source", titles, len(titles), beside)
    if kind == "worked":
        st.caption(_("Five candidates after 今天天气, with the logits that textbooks use."))
        return _listed(list(worked.LOGITS).__getitem__, list(worked.LOGITS.values()))
    return {"own": _own, "step": _step, "model": _model}[kind]()


def _model() -> Source:
    position = widgets.position_picker(label=_("Choose a token: the distribution after it is shown"))
    ids = tuple(session.encoding().ids)
    lm = session.language_model()
    code = (
        f"lm = lmcore.load({lm.name!r})\n"
        f"ids = lm.tokenizer.encode({session.prompt()!r}).ids\n"
        f"logits = lm(ids)[{position}]"
    )
    return Source(
        session.logits()[position].numpy(),
        lm.tokenizer.token_bytes,
        lambda text: lm.tokenizer.encode(text).ids,
        History(prompt=ids[: position + 1]),
        code,
        f"lmcore.History(prompt=ids[:{position + 1}])",
    )


def _step() -> Source:
    step = kept.choose()
    lm, ids = step.lm, [*step.prompt_ids, *step.generated]
    code = f"lm = lmcore.load({lm.name!r})\nids = {ids}\nlogits = lm(ids)[-1]"
    n = len(step.prompt_ids)
    return Source(
        step.logits,
        lm.tokenizer.token_bytes,
        lambda text: lm.tokenizer.encode(text).ids,
        History(step.prompt_ids, step.generated),
        code,
        f"lmcore.History(prompt=ids[:{n}], generated=ids[{n}:])",
    )


def _own() -> Source:
    text = st.session_state.get("own_logits")
    if text is None or len(text) <= MAX_IN_ADDRESS:
        text = link.remember("own_logits", EXAMPLE)
    st.caption(_("One token per line as “token: value”, a bare list of numbers, CSV, JSON, or the answer of a server."))
    long_text(
        st.session_state["own_logits"],
        key="own_logits.field",
        label=_("Your own logits"),
        hint=_("Paste logits here."),
        max_chars=MAX_CHARACTERS,
        on_change=lambda changed: st.session_state.update({"own_logits": changed}),
        rows=6,
    )
    _show_file()
    found = _read(st.session_state["own_logits"])
    if found.is_request:
        st.info(
            _(
                "These are the settings of a request, not logits. **Paste a request**, above, reads them under the "
                "names that servers give them and sets the lab to them."
            )
        )
        link.stop()
    if found.problems:
        n = len(found.problems)
        if found.from_json:
            sentence = _("Entry {number} is not a logit: {text}")
            heading = ngettext(
                "{n} entry could not be read; the rest is kept.", "{n} entries could not be read; the rest is kept.", n
            )
        else:
            sentence = _("Line {number} is not a logit: {text}")
            heading = ngettext(
                "{n} line could not be read; the rest is kept.", "{n} lines could not be read; the rest is kept.", n
            )
        listed = [
            sentence.format(number=number, text=visible(line[:60])) for number, line in found.problems[:MAX_PROBLEMS]
        ]
        st.text("\n".join([heading.format(n=n), *listed, *(["…"] if n > MAX_PROBLEMS else [])]))
    if not found.logits:
        st.info(_("Give at least one logit, such as “token: 2.3”."))
        link.stop()
    if max(found.logits) == -np.inf:
        st.info(_("Every logit is -inf, so no token is possible. Give at least one finite number."))
        link.stop()
    return _of_own(found)


def _show_file() -> None:
    """Let the reader open a file in place of pasting it."""
    opened = st.file_uploader(
        _("Open a file of logits: CSV, JSON, text or NPY"), ["csv", "json", "txt", "tsv", "npy"], key="own_logits.file"
    )
    if opened is None or st.session_state.get(_OPENED) == opened.file_id:
        return
    st.session_state[_OPENED] = opened.file_id
    try:
        st.session_state["own_logits"] = text_of_file(opened.name, opened.getvalue())
    except ValueError as wrong:
        st.text(_("{name} could not be read: {reason}").format(name=visible(opened.name), reason=visible(str(wrong))))


def text_of_file(name: str, content: bytes) -> str:
    """Return a file as the text that would be pasted.

    Raises:
        ValueError: a .npy file that is no array of numbers, or a text that is not UTF-8.
    """
    if not name.lower().endswith(".npy"):
        return content.decode("utf-8-sig")[:MAX_CHARACTERS]
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype.kind not in "fiu" or array.size != max(array.shape, default=1):
        raise ValueError(f"an array of numbers with one axis is wanted, this is {array.dtype} of shape {array.shape}")
    return "\n".join(repr(float(number)) for number in array.ravel())


def _of_own(found: OwnLogits) -> Source:
    """Return what was read as a source: under its own ids where it has them, under the model's names where they fit."""
    lm = session.language_model()
    known = lm.config.vocab_size
    logits = np.array(found.logits)
    names = dict(enumerate(found.tokens))
    if found.ids:
        logits = np.full(max(known, max(found.ids) + 1), -np.inf)
        logits[found.ids] = found.logits
        names = dict(zip(found.ids, found.tokens, strict=True))
        st.caption(_("Tokens have the ids that are given; ids that are not listed are impossible here."))
    elif len(logits) == known and not any(found.tokens):
        sentence = _("{n} numbers, as many as {name} has tokens: they have its names.")
        st.caption(sentence.format(n=f"{known:,}", name=lm.name))
    if found.untold > 0:
        others = _("all others")
        names[len(logits)] = others
        logits = np.append(logits, math.log(found.untold))
        st.caption(
            _(
                "The log-probabilities given sum to {told}; the other tokens share {rest}. They are kept as one entry, "
                "“{others}”: a temperature or a filter treats them as one token."
            ).format(told=fmt_probability(1 - found.untold), rest=fmt_probability(found.untold), others=others)
        )
    is_the_models = len(logits) == known or bool(found.ids)

    def token(token_id: int) -> bytes | str:
        name = names.get(token_id)
        if name is not None:
            return name
        return lm.tokenizer.token_bytes(token_id) if is_the_models and token_id < known else str(token_id)

    return _listed(token, logits.tolist())


def _read(text: str) -> OwnLogits:
    """Read the text once, not at each run of the page."""
    last = st.session_state.get("own_logits.read")
    if last is None or last[0] != text:
        last = st.session_state["own_logits.read"] = (text, read(text))
    return last[1]


def _listed(token: Callable[[int], bytes | str], logits: list[float]) -> Source:
    shown = logits if len(logits) <= 50 else logits[:50]
    code = f"logits = {shown!r}".replace("-inf", 'float("-inf")')
    if len(logits) > len(shown):
        code += _("  # and so on")

    def encode(text: str) -> list[int]:
        names = (token(id_) for id_ in range(len(logits)))
        return split(text, [name if isinstance(name, str) else name.decode("utf-8", "replace") for name in names])

    return Source(np.array(logits, dtype=np.float64), token, encode, History(), code)


def split(text: str, tokens: Sequence[str]) -> list[int]:
    """Return the ids of the listed tokens a text is made of, at each place the longest one; what is none is left out.

    >>> split("不错好x很", ["很", "好", "不", "不错"])
    [3, 1, 0]
    """
    by_text: dict[str, int] = {}
    for token_id, token in enumerate(tokens):
        by_text.setdefault(token, token_id)
    longest = max(map(len, by_text), default=0)
    ids, place = [], 0
    while place < len(text):
        sizes = range(min(longest, len(text) - place), 0, -1)
        found = next((text[place : place + size] for size in sizes if text[place : place + size] in by_text), None)
        if found is not None:
            ids.append(by_text[found])
        place += len(found or " ")
    return ids
