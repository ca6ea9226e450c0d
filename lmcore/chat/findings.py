"""What `check` can find in a conversation, a template and a model: what follows from it, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Unmeasured = Literal["", "long", "late"]


@dataclass(frozen=True)
class Harm:
    """What a fault costs this model, measured.

    Attributes:
        measure: "loss": of the true answer, in nats per token. "probability": of the token that ends the turn.
        as_is: with the fault.
        mended: without it.
    """

    measure: Literal["loss", "probability"]
    as_is: float
    mended: float


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that goes wrong easily.

    Attributes:
        kind: which, a key of `KINDS`.
        place: (start, end) in characters of the rendered text; None where it has none.
        message: the index of the message it is about.
        values: what the sentences name.
        harm: what it costs; None where it was not measured.
        unmeasured: why not: "long" where text and answer have more tokens than are measured, "late" where measuring
            took its time; "" where no true answer was given, or there is nothing to compare.
    """

    kind: str
    place: tuple[int, int] | None = None
    message: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    harm: Harm | None = None
    unmeasured: Unmeasured = ""

    @property
    def consequence(self) -> str:
        """What is found, and what follows from it."""
        return KINDS[self.kind][0].format(**self.values)

    @property
    def mend(self) -> str:
        """What mends it."""
        return KINDS[self.kind][1].format(**self.values)


KINDS: Mapping[str, tuple[str, str]] = {
    "refused": (
        "The template refuses this conversation: {sentence}",
        "Change the message, or use a template that takes it.",
    ),
    "message_dropped": (
        "The content of message {number} ({role}) is nowhere in the text: the model never sees it, without a warning.",
        "Use a role that the template writes, or another template.",
    ),
    "content_cut": (
        "Of message {number} ({role}) {lost} of {n} characters are not in the text.",
        "Templates often trim spaces and leave out earlier thinking. If this text matters, write it differently.",
    ),
    "system_moved": (
        "The system message is written into the turn of another role: the model sees no system turn.",
        "Some models have no system role. Put the instruction into the first user message, where all can see it.",
    ),
    "bos_missing": (
        "The model was trained on texts that begin with {token}; this text does not.",
        "Let the template write bos_token, or put the token in front of the ids.",
    ),
    "bos_doubled": (
        "The text begins with {token} twice; the model has not seen that in training.",
        "Leave one out: in the template, in the message, or where the text becomes ids.",
    ),
    "bos_added_again": (
        "The template writes {token}, and the tokenizer puts it in front of every text as well. A program that first "
        "renders and then encodes as usual gives the model two.",
        "Encode the rendered text with add_special_tokens=False, as is done here.",
    ),
    "control_as_text": (
        "The template writes {string}, but this vocabulary has no such token: the model sees {n} pieces of plain text.",
        "Use the template that belongs to this tokenizer, or add the token that the model was trained with.",
    ),
    "text_became_control": (
        "Message text contains {string}, which became a control token: whoever writes the message can end the turn "
        "and speak in another role.",
        "Encode message text with control strings as text (user_text_stays_text=True).",
    ),
    "stop_differs": (
        "The template ends the assistant's turn with {token}, but generation does not stop there. It stops at {ends}.",
        "Add {token} to the end tokens (eos_token_id of generation_config.json).",
    ),
    "prompt_missing": (
        "The last message is not the assistant's, and the text does not begin its turn: the model may go on with the "
        "user's text.",
        "Set add_generation_prompt.",
    ),
    "prompt_ignored": (
        "The template takes no notice of add_generation_prompt: the text does not begin the assistant's turn.",
        "Add a branch for add_generation_prompt to the template.",
    ),
    "prompt_after_answer": (
        "The last message is the assistant's, and a new turn begins after it: the model does not go on with it.",
        "To go on with it, set continue_final_message instead of add_generation_prompt.",
    ),
    "token_split": (
        "The text ends with {piece}. In training, that and the beginning of an answer were one token, {whole}: the "
        "model has hardly seen this split.",
        "Remove the white space from the end of the text.",
    ),
    "template_differs": (
        "{other} writes another text for this conversation, from character {at} on: {theirs} in place of {ours}.",
        "Find out which of the two the model was trained with, and use that one.",
    ),
    "other_refused": (
        "{other} refuses this conversation: {sentence}",
        "Change the message, or stay with the template that takes it.",
    ),
    "other_unknown": (
        "What {other} writes is not known, so nothing is compared: {sentence}",
        "Try again. If it stays so, its template asks for too much.",
    ),
    "ids_differ": (
        "{other} writes the same text and reads it differently: from token {at} on, its ids are {theirs} in place of "
        "{ours}.",
        "Often one of the two adds a BOS, or reads control strings as text. Find out which ids the model was trained "
        "with.",
    ),
}
"""Kind -> (what follows from it, what mends it)."""


def texts() -> set[str]:
    """Return all sentences, for those who translate them."""
    return {sentence for pair in KINDS.values() for sentence in pair}
